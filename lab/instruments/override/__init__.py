"""Override heads: the few heads that decide between two answers, found and shown to decide.

`find.find_heads` finds them, `prove.prove` ablates them against random sets, `knockout.knock_out`
cuts attention, `classify.classify` tells heads that write an answer from heads that route,
`backup.backups` looks for heads that stand in for them, `generation.generate_ablated` gives texts
to read, `overlap.overlap` compares two findings, `restored.restore_verdicts` puts the generator's
heads into the judge. Everything runs on pairs (`pairs.make_pair`, or `contests.contest_pair` from a
conflict): two prompts that call for different answers. docs/override.md tells the rules and how
they are known; `lab.studies.override.run.run_override` does all of it.
"""
