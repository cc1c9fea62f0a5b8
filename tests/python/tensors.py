#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors in buffers, after install()."""

import io
import multiprocessing
import pickle
import warnings
from multiprocessing.reduction import ForkingPickler

import memclient
import workers
from support import PickleTest, main, skip_without

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    np = skip_without("numpy")
    torch = skip_without("torch")


def load(tensor):
    return pickle.loads(ForkingPickler.dumps(tensor))


class Tensors(PickleTest):
    def setUp(self):
        memclient.install()
        self.tensor = torch.from_numpy(memclient.array(np.arange(120, dtype="f4").reshape(4, 5, 6)))

    def tearDown(self):
        del self.tensor
        super().tearDown()

    def test_they_are_the_same_memory(self):
        for tensor in (
            self.tensor, self.tensor[1:, ::2], self.tensor.permute(2, 0, 1), self.tensor.view(torch.int32),
            self.tensor[0, 0, 0], self.tensor[0].expand(7, 5, 6),
        ):  # fmt: skip
            other = load(tensor)
            self.assertEqual(
                (other.data_ptr(), other.dtype, other.shape, other.stride()),
                (tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()),
            )
        self.assertTrue(load(self.tensor.detach().requires_grad_()).requires_grad)

    def test_between_processes(self):
        with multiprocessing.get_context("fork").Pool(1) as pool:
            other, address = pool.apply(workers.add_one_to_tensor, (self.tensor,))
            self.assertEqual({address, other.data_ptr()}, {self.tensor.data_ptr()})
            self.assertEqual(self.tensor[0, 0, 5].item(), 6)
            pool.close()
            pool.join()

    def test_others_are_pickled_as_before(self):
        for tensor in (torch.arange(5), torch.zeros(0), self.tensor.clone()):
            self.assertTrue(torch.equal(load(tensor), tensor))
        # what is stored is whole
        self.assertGreater(len(pickle.dumps(self.tensor)), 480)
        file = io.BytesIO()
        torch.save(self.tensor, file)
        self.assertGreater(len(file.getvalue()), 480)

    def test_those_in_a_block_are_given_away(self):
        memclient.install()
        pool = memclient.Pool("tensors", 4096)
        t = torch.from_numpy(pool.array([1, 2, 3, 4]))[1:]
        p = bytes(ForkingPickler.dumps(t))
        self.assertEqual(pool.status().given, 1)
        address = t.data_ptr()
        del t
        u = pickle.loads(p)
        self.assertEqual((u.tolist(), u.data_ptr(), pool.status().mine), ([2, 3, 4], address, 1))
        with self.assertRaises(memclient.Stale):
            pickle.loads(p)
        del u
        pool.destroy()

    def test_memory_stays_that_was_taken_without_a_view(self):
        b = memclient.alloc(4096)
        t = torch.frombuffer(b, dtype=torch.uint8)
        b.close()
        del b
        t += 1
        self.assertEqual(int(t.sum()), 4096)

    def test_geometry_is_not_believed(self):
        from memclient._tensors import open_tensor, reduce_tensor

        token, rights, counted, *_ = reduce_tensor(self.tensor)[1]
        for offset, shape, strides, name in [
            (0, (121,), (1,), "float32"), (4, (120,), (1,), "float32"), (-4, (1,), (1,), "float32"),
            (0, (2**32 + 1,), (2**30,), "float32"), (0, (2,), (-1,), "float32"), (0, (1,), (1, 1), "float32"),
            (480, (1,), (1,), "uint8"), (0, (1,), (1,), "load"), (0, (1,), (1,), None), (0, [1], (1,), "uint8"),
            (0, (120, 2), (1, 1), "float32"), (0, (61,), (1,), "float64"), (0, (2**63,), (0,), "uint8"),
        ]:  # fmt: skip
            with self.subTest(geometry=(offset, shape, strides, name)), self.assertRaises(Exception):
                open_tensor(token, rights, counted, offset, shape, strides, name, False)


if __name__ == "__main__":
    main()
