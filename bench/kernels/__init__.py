"""Speed, memory and counted operations of the kernels by themselves, without Spark."""
