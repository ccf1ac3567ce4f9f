"""What a .pte file contains beside its methods: types and bytes of weights, and its plan of memory."""
