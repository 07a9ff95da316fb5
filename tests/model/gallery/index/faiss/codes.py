"""Looks at the codes in a FAISS index."""

import faiss
import numpy as np

from sameface.model.gallery.index.faiss.candidates import Faiss


def code_of(index: Faiss, row: int) -> bytes:
    """The code of a row."""
    packer = index.get_CodePacker()
    blocks = faiss.rev_swig_ptr(index.codes.get(), index.codes.size()).reshape(-1, packer.block_size)
    block, place = divmod(row, packer.nvec)
    return packer.unpack_1(blocks[block : block + 1], place).tobytes()


def blank_of(index: Faiss) -> bytes:
    """The code of a deleted row: that of no embedding."""
    return index.pq.compute_codes(np.zeros((1, index.d), np.float32)).tobytes()
