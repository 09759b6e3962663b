"""Going through the doubtful cases of a run, in a browser: a page, its server, what was decided."""
