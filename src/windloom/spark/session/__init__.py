"""Sessions: Java, the JVM that Spark runs in, and what makes it start sooner."""
