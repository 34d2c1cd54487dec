/* What versions of CPython spell differently.  All else that is used of its C interface is documented, and alike from 3.11 on. */

/* What a weak reference is to: 1 and a new reference; 0, and NULL, if that is gone; -1 with an exception. */
static inline int
referent(PyObject *weak, PyObject **object)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyWeakref_GetRef(weak, object);
#else
    PyObject *x = PyWeakref_GetObject(weak);
    *object = x == NULL || x == Py_None ? NULL : Py_NewRef(x);
    return x == NULL ? -1 : *object != NULL;
#endif
}

/* What a class itself holds, by name; a new reference, or NULL. */
static inline PyObject *
class_dictionary(PyTypeObject *kind)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyType_GetDict(kind);
#else
    return Py_XNewRef(kind->tp_dict);
#endif
}

/* How many calls a thread may still nest. */
static inline int
frames_left(PyThreadState *state)
{
#if PY_VERSION_HEX >= 0x030C0000
    return state->py_recursion_remaining;
#else
    return state->recursion_remaining;
#endif
}
