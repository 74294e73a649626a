"""Tables of what can be told and asked, one file for each kind of thing."""
