"""The library's large instances."""

from benchmark_utils.library import data_of, names
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """One instance a parameter: made from its recipe, with the records that are on file."""

    name = "library-large"
    parameters = {"instance": names("large")}
    test_parameters = {"instance": names("large")[:1]}

    def get_data(self):
        return data_of(self.instance)
