"""Sessions: Java, the JVM in which Spark runs, and the archive that makes it start sooner."""
