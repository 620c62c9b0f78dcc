"""What was decided: objective and violations from the definition, without model or solver."""
