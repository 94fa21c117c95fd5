"""What is kept between rounds, and the life of every kind of window."""
