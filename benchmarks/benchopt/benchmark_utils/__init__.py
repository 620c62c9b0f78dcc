"""What datasets, objective and solvers share: instances of the library, and their judgement."""
