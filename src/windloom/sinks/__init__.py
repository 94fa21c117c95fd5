"""Where rows go, exactly once; one file per sink."""
