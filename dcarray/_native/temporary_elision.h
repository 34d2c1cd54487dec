/* Operators whose result may be written over an operand that is a temporary, as NumPy does with its own.
 *
 * An operator cannot know by itself that an operand with a single reference is nobody's but the interpreter's, which is
 * about to drop it: what calls the operator may be an array of objects, or compiled code, which holds the one reference
 * for longer.  So the operands are looked for where the interpreter has them, on the stack of its frame
 * (value_stack.h). */

#include "value_stack.h"

/* The memory of a large temporary that NumPy made at once, or NULL; borrowed. */
static PyObject *
reusable_memory(PyObject *x)
{
    PyObject *view;
    if (!is_large(x) || Py_REFCNT(x) != 1 || AT(x, Store) != NULL || AT(x, Wrapped->tp_weaklistoffset) != NULL)
        return NULL;
    view = AT(x, View);
    if (view == NULL || Py_TYPE(view) != PlainClass || Py_REFCNT(view) != 1 || !is_fresh(view) ||
        !(((Array *)view)->flags & WRITEABLE))
        return NULL;
    return elements_of(view) * Known[((Array *)view)->dtype->type & 127].width >= LEAST && in_eager_period() ? view : NULL;
}

/* Has the result of an array like `a` and `q` the shape and the dtype of `a`? */
static int
keeps_type(Array *a, PyObject *q)
{
    Array *b = (Array *)q;
    if (Py_TYPE(q) != PlainClass)
        return PyFloat_CheckExact(q) ? strchr("fc", a->dtype->kind) != NULL
                                     : PyLong_CheckExact(q) || Py_TYPE(q) == a->dtype->scalar;
    return a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, a->ndim * sizeof(Py_ssize_t)) == 0;
}

/* The ufunc of two operands, written over one of them that is dying; `may` says which may be: 1, 2, or both.  NULL where
 * that is not to be had, or with an error. */
static PyObject *
over_dying(PyObject *ufunc, const char *kinds, PyObject *const *args, long may)
{
    for (int k = 0; k < 2 && ufunc != NULL; k++) {
        PyObject *a = may & (1 << k) ? reusable_memory(args[k]) : NULL, *q = a == NULL ? NULL : numpy_operand(args[1 - k]), *all[3], *r;
        if (q == NULL || strchr(kinds, ((Array *)a)->dtype->kind) == NULL || !keeps_type((Array *)a, q))
            continue;
        all[k] = all[2] = a;
        all[1 - k] = q;
        r = PyObject_Vectorcall(ufunc, all, 3, NULL);
        if (r == NULL)
            return NULL;
        Py_DECREF(r);
        note_site(args[k]);
        return Py_NewRef(args[k]);
    }
    return NULL;
}

/* The same for an operator that the interpreter is running; NULL where the operands are not its own. */
static inline PyObject *
over_temporary(PyObject *ufunc, const char *kinds, PyObject *a, PyObject *b)
{
    PyObject *both[2] = {a, b};
    long may = (Py_REFCNT(a) == 1 && is_large(a)) + 2 * (Py_REFCNT(b) == 1 && is_large(b));
    return may && are_operands_here(a, b) ? over_dying(ufunc, kinds, both, may) : NULL;
}
