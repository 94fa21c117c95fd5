"""What a kind of window decides in a round: when it closes, what it keeps, what is late; one file per kind."""
