"""Head sets switched on and off for one conflict, live: ask, run, show, click."""
