"""Relations in FROM, and the meaning of their names."""
