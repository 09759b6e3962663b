"""The paper's studies and our own; run with `./run reproduce` or `./run python -m studies.NAME`."""
