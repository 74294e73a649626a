"""How a role is trained: LoRA adapters, from targets in the lab's own prompts."""
