/* SPDX-License-Identifier: Apache-2.0 */
/* The module object. */
#include "module.h"

static int module_exec(PyObject *module)
{
    struct module_state *state = module_state(module);

    /* until memclient.errors has its own */
    Py_INCREF(PyExc_OSError);
    state->error = PyExc_OSError;
    if (buffer_add_type(module, state) || heap_add_type(module, state) || block_add_type(module, state) ||
        PyModule_AddFunctions(module, errors_functions) || PyModule_AddFunctions(module, array_functions) ||
        PyModule_AddFunctions(module, open_functions) || PyModule_AddFunctions(module, list_functions) ||
        PyModule_AddFunctions(module, event_functions) || PyModule_AddFunctions(module, heap_functions) ||
        PyModule_AddFunctions(module, numpy_functions))
        return -1;
    return PyModule_AddStringConstant(module, "library_version", memclient_version());
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct module_state *state = module_state(module);

    Py_VISIT(state->error);
    Py_VISIT(state->buffer_type);
    Py_VISIT(state->heap_type);
    Py_VISIT(state->block_type);
    return 0;
}

static int module_clear(PyObject *module)
{
    struct module_state *state = module_state(module);

    Py_CLEAR(state->error);
    Py_CLEAR(state->buffer_type);
    Py_CLEAR(state->heap_type);
    Py_CLEAR(state->block_type);
    return 0;
}

static void module_free(void *module)
{
    module_clear(module);
}

PyMODINIT_FUNC PyInit__memclient(void);

PyMODINIT_FUNC PyInit__memclient(void)
{
    static PyModuleDef_Slot slots[] = {
        {Py_mod_exec, module_exec},
        {0, NULL},
    };
    static struct PyModuleDef def = {
        PyModuleDef_HEAD_INIT,
        .m_name = "memclient._memclient",
        .m_doc = "libmemclient's native functions. Programs use the package memclient.",
        .m_size = sizeof(struct module_state),
        .m_slots = slots,
        .m_traverse = module_traverse,
        .m_clear = module_clear,
        .m_free = module_free,
    };

    return PyModuleDef_Init(&def);
}
