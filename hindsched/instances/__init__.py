"""What is given: frozen, validated instances, their files, generators and trace loaders."""
