"""`python -m windloom` is the `windloom` command."""

from windloom.cli.main import main

if __name__ == "__main__":
    main()
