"""What a person sees: decisions, tables, progress, pictures in the terminal, advice."""
