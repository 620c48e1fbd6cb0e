package store

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Opt is a value that may be missing; a missing value is NULL in the database,
// null in JSON and an empty cell in CSV. Zero is a value, not an absence.
type Opt[T int64 | float64 | string] struct {
	V  T
	OK bool
}

// Some is the present value v. A NaN is not a value: it becomes missing, as
// SQLite would store it as NULL.
func Some[T int64 | float64 | string](v T) Opt[T] {
	if f, is := any(v).(float64); is && math.IsNaN(f) {
		return Opt[T]{}
	}
	return Opt[T]{v, true}
}

// None is the missing value.
func None[T int64 | float64 | string]() Opt[T] { return Opt[T]{} }

// Or returns the value, or d when it is missing.
func (o Opt[T]) Or(d T) T {
	if o.OK {
		return o.V
	}
	return d
}

// Value implements driver.Valuer.
func (o Opt[T]) Value() (driver.Value, error) {
	if !o.OK {
		return nil, nil
	}
	return any(o.V), nil
}

// Scan implements sql.Scanner.
func (o *Opt[T]) Scan(src any) error {
	*o = Opt[T]{}
	if src == nil {
		return nil
	}
	switch p := any(&o.V).(type) {
	case *int64:
		v, is := src.(int64)
		if !is {
			return fmt.Errorf("store: %T (%v) where an integer belongs", src, src)
		}
		*p = v
	case *float64:
		switch v := src.(type) {
		case float64:
			*p = v
		case int64:
			*p = float64(v)
		default:
			return fmt.Errorf("store: %T (%v) where a number belongs", src, src)
		}
	case *string:
		v, err := text(src)
		if err != nil {
			return err
		}
		*p = v
	}
	o.OK = true
	return nil
}

// MarshalJSON writes null for a missing value.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.OK {
		return []byte("null"), nil
	}
	return json.Marshal(o.V)
}

// UnmarshalJSON reads null as missing.
func (o *Opt[T]) UnmarshalJSON(b []byte) error {
	*o = Opt[T]{}
	if string(b) == "null" {
		return nil
	}
	if err := json.Unmarshal(b, &o.V); err != nil {
		return err
	}
	o.OK = true
	return nil
}

// Count is an Opt of a number that is not negative, in half of the memory: a run
// has millions of samples, each with more counters than its transport fills. The
// zero Count is missing.
type Count struct{ next int64 }

// Counted returns a count that is known.
func Counted(n int64) Count { return Count{max(n, 0) + 1} }

// Get returns the count, and whether it is known.
func (c Count) Get() (int64, bool) { return max(c.next-1, 0), c.next > 0 }

// Value implements driver.Valuer.
func (c Count) Value() (driver.Value, error) {
	if c.next == 0 {
		return nil, nil
	}
	return c.next - 1, nil
}

// Scan implements sql.Scanner.
func (c *Count) Scan(src any) error {
	var o Opt[int64]
	if err := o.Scan(src); err != nil {
		return err
	}
	if *c = (Count{}); o.OK {
		if o.V < 0 || o.V == math.MaxInt64 {
			return fmt.Errorf("store: %d where a count belongs", o.V)
		}
		*c = Counted(o.V)
	}
	return nil
}

// Seed is the seed of a campaign or of a run. It is stored as decimal text,
// because SQLite's integers end at 2^63-1 and a seed may use all 64 bits.
type Seed uint64

// Value implements driver.Valuer.
func (s Seed) Value() (driver.Value, error) { return strconv.FormatUint(uint64(s), 10), nil }

// Scan implements sql.Scanner.
func (s *Seed) Scan(src any) error {
	t, err := text(src)
	if err != nil {
		return err
	}
	v, err := strconv.ParseUint(t, 10, 64)
	if err != nil {
		return fmt.Errorf("store: seed %q: %w", t, err)
	}
	*s = Seed(v)
	return nil
}

// stampLayout sorts as text in the order of time.
const stampLayout = "2006-01-02T15:04:05.000Z"

// Stamp is a wall-clock moment, stored as RFC 3339 text in UTC with
// milliseconds. The zero Stamp is NULL.
type Stamp struct{ time.Time }

// StampOf converts a time, cutting it to the milliseconds that are stored.
func StampOf(t time.Time) Stamp { return Stamp{t.UTC().Truncate(time.Millisecond)} }

// String writes the moment in UTC, "" for none.
func (s Stamp) String() string {
	if s.IsZero() {
		return ""
	}
	return s.UTC().Format(stampLayout)
}

// Value implements driver.Valuer.
func (s Stamp) Value() (driver.Value, error) {
	if s.IsZero() {
		return nil, nil
	}
	return s.String(), nil
}

// Scan implements sql.Scanner.
func (s *Stamp) Scan(src any) error {
	*s = Stamp{}
	if src == nil {
		return nil
	}
	t, err := text(src)
	if err != nil {
		return err
	}
	s.Time, err = time.Parse(stampLayout, t)
	return err
}

// Params are the matrix variables of one point: name to value as the
// experiment file writes it ("8160us", "hop"). Stored as a JSON object.
type Params map[string]string

// Key is the canonical text of the point: JSON with sorted names. Equal points
// have equal keys.
func (p Params) Key() string {
	if len(p) == 0 {
		return "{}"
	}
	b, err := json.Marshal(map[string]string(p))
	if err != nil {
		panic("store: a map of strings has no JSON form: " + err.Error()) // cannot happen
	}
	return string(b)
}

// String writes "name=value, …" in the order of the names.
func (p Params) String() string {
	names := make([]string, 0, len(p))
	for n := range p {
		names = append(names, n)
	}
	sort.Strings(names)
	for i, n := range names {
		names[i] = n + "=" + p[n]
	}
	return strings.Join(names, ", ")
}

// Value implements driver.Valuer.
func (p Params) Value() (driver.Value, error) { return p.Key(), nil }

// Scan implements sql.Scanner.
func (p *Params) Scan(src any) error { return scanJSON(src, (*map[string]string)(p)) }

// Facts are named facts about a host, a run or a node ("kernel": "6.18.5").
// Stored as a JSON object.
type Facts map[string]string

// Value implements driver.Valuer.
func (f Facts) Value() (driver.Value, error) { return Params(f).Key(), nil }

// Scan implements sql.Scanner.
func (f *Facts) Scan(src any) error { return scanJSON(src, (*map[string]string)(f)) }

// Counters are transport-specific counts of a flow that have no column of
// their own. Stored as a JSON object of integers.
type Counters map[string]int64

// Value implements driver.Valuer.
func (c Counters) Value() (driver.Value, error) {
	if c == nil {
		return "{}", nil
	}
	return valueJSON(map[string]int64(c))
}

// Scan implements sql.Scanner.
func (c *Counters) Scan(src any) error { return scanJSON(src, (*map[string]int64)(c)) }

// Strings is a list of texts, stored as a JSON array.
type Strings []string

// Value implements driver.Valuer.
func (s Strings) Value() (driver.Value, error) {
	if s == nil {
		return "[]", nil
	}
	return valueJSON([]string(s))
}

// Scan implements sql.Scanner.
func (s *Strings) Scan(src any) error { return scanJSON(src, (*[]string)(s)) }

// Path is the list of node indices from source to destination, both included.
// Stored as a JSON array.
type Path []int

// Value implements driver.Valuer.
func (p Path) Value() (driver.Value, error) {
	if p == nil {
		return "[]", nil
	}
	return valueJSON([]int(p))
}

// Scan implements sql.Scanner.
func (p *Path) Scan(src any) error { return scanJSON(src, (*[]int)(p)) }

func valueJSON(v any) (driver.Value, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

func scanJSON(src, dst any) error {
	t, err := text(src)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(t), dst); err != nil {
		return fmt.Errorf("store: %q: %w", t, err)
	}
	return nil
}

func text(src any) (string, error) {
	switch v := src.(type) {
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	}
	return "", fmt.Errorf("store: %T (%v) where text belongs", src, src)
}
