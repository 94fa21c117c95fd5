"""From SQL text to checked names, expressions and predicates; the syntax trees come from sqlglot."""
