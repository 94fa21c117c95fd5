"""Sessions: Java, the JVM in which Spark runs, and what makes it start sooner."""
