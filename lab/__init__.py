"""Role Lens: does a language model read, when it judges, what it read when it answered?"""
