/* Loops like those of ufuncs for what has none: conversions between dtypes, and choices by a condition.
 *
 * A conversion means what C's does, as NumPy's does: of a number that does not fit, what the processor gives, and the
 * exception that it raises. */

typedef struct {
    uint64_t low, high;
} Pair;

/* X(letter, type, name): the real dtypes that are converted; twice, since a macro cannot be used within itself. */
#define REALS(X)                                                                                             \
    X('?', unsigned char, truth) X('b', int8_t, i1) X('B', uint8_t, u1) X('h', int16_t, i2) X('H', uint16_t, u2) \
    X('i', int32_t, i4) X('I', uint32_t, u4) X('l', int64_t, i8) X('L', uint64_t, u8) X('f', float, f4) X('d', double, f8)
#define REALS_FROM(X, to, name)                                                                              \
    X(unsigned char, truth, to, name) X(int8_t, i1, to, name) X(uint8_t, u1, to, name) X(int16_t, i2, to, name) \
    X(uint16_t, u2, to, name) X(int32_t, i4, to, name) X(uint32_t, u4, to, name) X(int64_t, i8, to, name)    \
    X(uint64_t, u8, to, name) X(float, f4, to, name) X(double, f8, to, name)

#define CONVERSION(from, from_name, to, to_name, expression)                                                 \
    static void from_name##_to_##to_name(char **pointers, const Py_ssize_t *n, const Py_ssize_t *strides, void *data) \
    {                                                                                                        \
        const char *p = pointers[0];                                                                         \
        char *q = pointers[1];                                                                               \
        Py_ssize_t count = *n, s = strides[0], t = strides[1];                                               \
        if (s == sizeof(from) && t == sizeof(to)) /* which can be done several at a time */                  \
            for (Py_ssize_t k = 0; k < count; k++) {                                                         \
                from x = ((const from *)p)[k];                                                               \
                ((to *)q)[k] = expression;                                                                   \
            }                                                                                                \
        else                                                                                                 \
            for (Py_ssize_t k = 0; k < count; k++, p += s, q += t) {                                         \
                from x = *(const from *)p;                                                                   \
                *(to *)q = expression;                                                                       \
            }                                                                                                \
    }
#define TO_NUMBER(from, from_name, to, to_name) CONVERSION(from, from_name, to, to_name, (to)x)
#define TO_TRUTH(from, from_name, to, to_name) CONVERSION(from, from_name, to, to_name, x != 0)
#define TO_NUMBERS(letter, to, name) REALS_FROM(TO_NUMBER, to, name)
TO_NUMBERS('b', int8_t, i1)
TO_NUMBERS('B', uint8_t, u1)
TO_NUMBERS('h', int16_t, i2)
TO_NUMBERS('H', uint16_t, u2)
TO_NUMBERS('i', int32_t, i4)
TO_NUMBERS('I', uint32_t, u4)
TO_NUMBERS('l', int64_t, i8)
TO_NUMBERS('L', uint64_t, u8)
TO_NUMBERS('f', float, f4)
TO_NUMBERS('d', double, f8)
REALS_FROM(TO_TRUTH, unsigned char, truth)
CONVERSION(Pair, complex, Pair, complex, x)

/* The loop that converts from one dtype into another; NULL if there is none. */
static Inner *
conversion(char from, char to)
{
#define ENTRY(from, from_name, to, to_name) from_name##_to_##to_name,
#define ROW(letter, to, name) {REALS_FROM(ENTRY, to, name)},
#define LETTER(letter, to, name) letter,
    static Inner *const table[11][11] = {REALS(ROW)};
    static const char letters[] = {REALS(LETTER) 0};
    const char *p, *q;
    from = from == 'q' ? 'l' : from == 'Q' ? 'L' : from;
    to = to == 'q' ? 'l' : to == 'Q' ? 'L' : to;
    if (from == 'D' && to == 'D')
        return complex_to_complex;
    if (from == 'F' && to == 'F')
        return u8_to_u8; /* whatever the bits are */
    if ((from == 'D' || from == 'F') && to != '?') /* the real part, with which an element begins */
        from = from == 'D' ? 'd' : 'f';
    p = strchr(letters, from);
    q = strchr(letters, to);
    if (sizeof(long) != 8 || p == NULL || q == NULL || from == 0 || to == 0)
        return NULL;
    if ((from == 'f' || from == 'd') && to == 'L') /* compilers differ in numbers that do not fit */
        return NULL;
    return table[q - letters][p - letters];
}

/* Without branches, which nobody could predict: all bits of the one or of the other. */
#define CHOICE(type, name)                                                                                   \
    static inline type name##_of(unsigned char condition, type x, type y)                                    \
    {                                                                                                        \
        type mask = (type)-(type)(condition != 0);                                                           \
        return (x & mask) | (y & (type)~mask);                                                               \
    }                                                                                                        \
    static void name(char **pointers, const Py_ssize_t *n, const Py_ssize_t *strides, void *data)            \
    {                                                                                                        \
        const unsigned char *c = (const unsigned char *)pointers[0];                                         \
        const char *p = pointers[1], *q = pointers[2];                                                       \
        char *r = pointers[3];                                                                               \
        Py_ssize_t count = *n, a = strides[0], s = strides[1], t = strides[2], u = strides[3];               \
        const Py_ssize_t size = sizeof(type);                                                                \
        type one, two;                                                                                       \
        if (count <= 0)                                                                                      \
            return;                                                                                          \
        one = *(const type *)p;                                                                              \
        two = *(const type *)q;                                                                              \
        if (a == 1 && u == size && s == size && t == size)                                                   \
            for (Py_ssize_t k = 0; k < count; k++)                                                           \
                ((type *)r)[k] = name##_of(c[k], ((const type *)p)[k], ((const type *)q)[k]);                \
        else if (a == 1 && u == size && s == size && t == 0)                                                 \
            for (Py_ssize_t k = 0; k < count; k++)                                                           \
                ((type *)r)[k] = name##_of(c[k], ((const type *)p)[k], two);                                 \
        else if (a == 1 && u == size && s == 0 && t == size)                                                 \
            for (Py_ssize_t k = 0; k < count; k++)                                                           \
                ((type *)r)[k] = name##_of(c[k], one, ((const type *)q)[k]);                                 \
        else                                                                                                 \
            for (Py_ssize_t k = 0; k < count; k++, c += a, p += s, q += t, r += u)                           \
                *(type *)r = name##_of(*c, *(const type *)p, *(const type *)q);                              \
    }
CHOICE(uint8_t, choose_1)
CHOICE(uint16_t, choose_2)
CHOICE(uint32_t, choose_4)
CHOICE(uint64_t, choose_8)

/* Both halves of elements of 16 bytes. */
static void
choose_16(char **pointers, const Py_ssize_t *n, const Py_ssize_t *strides, void *data)
{
    for (int half = 0; half < 16; half += 8) {
        char *halves[4] = {pointers[0], pointers[1] + half, pointers[2] + half, pointers[3] + half};
        choose_8(halves, n, strides, data);
    }
}

/* The loop that chooses by a condition between elements of so many bytes; NULL if there is none. */
static Inner *
choice(Py_ssize_t width)
{
    return width == 1 ? choose_1 : width == 2 ? choose_2 : width == 4 ? choose_4 : width == 8 ? choose_8 : width == 16 ? choose_16 : NULL;
}
