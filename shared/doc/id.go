package doc

import (
	"strings"
	"unicode/utf8"
)

const (
	// MaxIDBytes is the longest id in bytes: the limit of an OpenSearch _id, so
	// that no stored document can be kept out of the index by its id.
	MaxIDBytes = 512
	// MaxIDSegments is the most segments an id may have.
	MaxIDSegments = 16
	// SystemMark begins the first segment of ids that belong to the system.
	SystemMark = '$'
)

// ID is a valid document id: two to sixteen segments joined by "/", such as
// "users/1" or "users/1/account/3". Values come from ParseID or Join.
type ID string

// Collection names a set of documents: the odd segments of their ids joined by
// "/". The ids users/1/account and users/1/account/3 are both in users/account.
type Collection string

// ParseID checks an id that came from a client.
// The error is of kind InvalidID and says which rule was broken.
func ParseID(s string) (ID, error) {
	n, err := checkPath(s)
	if err != nil {
		return "", err
	}
	if n < 2 {
		return "", Errorf(InvalidID, "an id has at least two segments, a collection and a key, such as users/1")
	}
	if s[0] == SystemMark {
		return "", Errorf(InvalidID, "ids whose first segment begins with $ are reserved for the system")
	}
	return ID(s), nil
}

// ParseStoredID checks an id that came from the system's own tables and queues.
// Unlike ParseID it admits ids of the system, whose first segment begins with $.
// The error is of kind InvalidID and says which rule was broken.
func ParseStoredID(s string) (ID, error) {
	n, err := checkPath(s)
	if err != nil {
		return "", err
	}
	if n < 2 {
		return "", Errorf(InvalidID, "an id has at least two segments, a collection and a key, such as users/1")
	}
	return ID(s), nil
}

// ParseCollection checks the name of a collection. A name has one to eight
// segments under the rules of ids. The error is of kind InvalidID.
func ParseCollection(s string) (Collection, error) {
	n, err := checkPath(s)
	if err != nil {
		return "", err
	}
	if n > MaxIDSegments/2 {
		return "", Errorf(InvalidID, "a collection name has at most %d segments", MaxIDSegments/2).
			With("limit", MaxIDSegments/2).With("actual", n)
	}
	return Collection(s), nil
}

// ParseParent checks the path of a collection inside a parent, which is where
// a server-assigned id is asked for: "users/" or "users/1/account/". It returns
// the path without its trailing slash. The number of segments is odd.
func ParseParent(s string) (string, error) {
	path, ok := strings.CutSuffix(s, "/")
	if !ok {
		return "", Errorf(InvalidID, "the path of a collection ends in /")
	}
	n, err := checkPath(path)
	if err != nil {
		return "", err
	}
	if n%2 == 0 {
		return "", Errorf(InvalidID, "the path of a collection has an odd number of segments, such as users/ or users/1/account/")
	}
	if path[0] == SystemMark {
		return "", Errorf(InvalidID, "ids whose first segment begins with $ are reserved for the system")
	}
	return path, nil
}

// checkPath applies the rules that ids and collection names share and counts
// the segments.
func checkPath(s string) (segments int, err error) {
	switch {
	case s == "":
		return 0, Errorf(InvalidID, "an id is not empty")
	case len(s) > MaxIDBytes:
		return 0, Errorf(InvalidID, "an id has at most %d bytes", MaxIDBytes).With("limit", MaxIDBytes).With("actual", len(s))
	case !utf8.ValidString(s):
		return 0, Errorf(InvalidID, "an id is valid UTF-8")
	}
	for _, r := range s {
		if r < 0x20 || r >= 0x7f && r <= 0x9f {
			return 0, Errorf(InvalidID, "an id contains no control character; this one has U+%04X", r)
		}
	}
	for seg := range strings.SplitSeq(s, "/") {
		segments++
		switch seg {
		case "":
			return 0, Errorf(InvalidID, "no segment of an id is empty, and an id neither begins nor ends with /")
		case ".", "..":
			return 0, Errorf(InvalidID, "no segment of an id is . or ..")
		}
	}
	if segments > MaxIDSegments {
		return 0, Errorf(InvalidID, "an id has at most %d segments", MaxIDSegments).With("limit", MaxIDSegments).With("actual", segments)
	}
	return segments, nil
}

// Root is the id's first two segments. A root with all ids below it is one item
// collection in DynamoDB, so it can be read strongly in one go.
func (id ID) Root() string {
	root, _ := id.split()
	return root
}

// Rest is what follows the root: "/" for the root document itself, else the
// remaining segments with their leading slash, such as "/account/3".
func (id ID) Rest() string {
	_, rest := id.split()
	return rest
}

func (id ID) split() (root, rest string) {
	s := string(id)
	first := strings.IndexByte(s, '/')
	if first < 0 {
		return s, "/"
	}
	second := strings.IndexByte(s[first+1:], '/')
	if second < 0 {
		return s, "/"
	}
	cut := first + 1 + second
	return s[:cut], s[cut:]
}

// Join is the inverse of Root and Rest.
func Join(root, rest string) ID {
	if rest == "/" {
		return ID(root)
	}
	return ID(root + rest)
}

// System reports whether the collection is one of the system's own, which
// clients neither read nor write.
func (c Collection) System() bool { return len(c) > 0 && c[0] == SystemMark }

// Collection is the id's odd segments joined by "/".
func (id ID) Collection() Collection {
	var b strings.Builder
	odd := true
	for seg := range strings.SplitSeq(string(id), "/") {
		if odd {
			if b.Len() > 0 {
				b.WriteByte('/')
			}
			b.WriteString(seg)
		}
		odd = !odd
	}
	return Collection(b.String())
}

// Prefix is a checked argument of a prefix load. It lies inside one root.
type Prefix struct {
	Root string
	Rest string // "" for the root and all below it, else what the rest of an id begins with
}

// ParsePrefix checks a prefix. One without a complete root is refused with kind
// UnrootedPrefix: such a search belongs to a query. "users/1" means that root
// document and all below it, "users/1/" all below it, "users/1/acc" every id
// whose text begins so.
func ParsePrefix(s string) (Prefix, error) {
	trimmed, slash := strings.CutSuffix(s, "/")
	if trimmed == "" {
		return Prefix{}, unrooted()
	}
	n, err := checkPath(trimmed)
	if err != nil {
		return Prefix{}, err
	}
	if n < 2 {
		return Prefix{}, unrooted()
	}
	if trimmed[0] == SystemMark {
		return Prefix{}, Errorf(InvalidID, "ids whose first segment begins with $ are reserved for the system")
	}
	root, rest := ID(trimmed).split()
	switch {
	case rest == "/" && slash:
		return Prefix{Root: root, Rest: "/"}, nil
	case rest == "/":
		return Prefix{Root: root}, nil
	case slash:
		return Prefix{Root: root, Rest: rest + "/"}, nil
	}
	return Prefix{Root: root, Rest: rest}, nil
}

func unrooted() *Error {
	return Errorf(UnrootedPrefix, "a prefix has at least two complete segments, such as users/1 or users/1/account/; across roots use POST /query with from")
}

// Contains reports whether the id lies under the prefix.
func (p Prefix) Contains(id ID) bool {
	root, rest := id.split()
	if root != p.Root {
		return false
	}
	switch p.Rest {
	case "":
		return true
	case "/":
		return rest != "/"
	}
	return strings.HasPrefix(rest, p.Rest)
}

// String is the prefix as a client writes it.
func (p Prefix) String() string { return p.Root + p.Rest }
