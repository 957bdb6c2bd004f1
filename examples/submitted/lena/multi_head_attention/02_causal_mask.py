import torhc
