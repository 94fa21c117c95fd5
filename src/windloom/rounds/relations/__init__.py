"""Relations in the step: the rows of a version at every end of a join's windows."""
