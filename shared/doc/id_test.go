package doc_test

import (
	"strings"
	"testing"

	"holdfast/shared/doc"

	"pgregory.net/rapid"
)

func TestParseIDRefusesWhatNoStoreCouldKeep(t *testing.T) {
	for name, id := range map[string]string{
		"empty":               "",
		"one segment":         "users",
		"trailing slash":      "users/1/",
		"leading slash":       "/users/1",
		"empty segment":       "users//1",
		"dot":                 "users/.",
		"dot dot":             "users/../1",
		"NUL":                 "users/\x00",
		"tab":                 "users/a\tb",
		"DEL":                 "users/\x7f",
		"C1 control":          "users/\u0085",
		"bad UTF-8":           "users/\xff",
		"overlong by a byte":  "u/" + strings.Repeat("a", 511),
		"overlong multi-byte": "u/" + strings.Repeat("é", 256),
		"17 segments":         strings.Repeat("a/", 16) + "a",
		"reserved":            "$canary/1",
	} {
		if _, err := doc.ParseID(id); doc.KindOf(err) != doc.InvalidID {
			t.Errorf("%s: ParseID(%.20q) = %v, want invalid-id", name, id, err)
		}
	}
}

func TestParseIDKeepsOddButValidText(t *testing.T) {
	for _, id := range []string{
		"users/1", "u/" + strings.Repeat("a", 510), "u/" + strings.Repeat("é", 255),
		strings.Repeat("a/", 15) + "a", `users/"q"`, `users/a\b`, "users/a b", "users/ ", "users/a+b", "users/50%", "users/a?b#c&d",
		"Users/1", "users/...", "users/$x", "users/😀", "users/\u00a0",
	} {
		got, err := doc.ParseID(id)
		if err != nil || string(got) != id {
			t.Errorf("ParseID(%q) = %q, %v", id, got, err)
		}
	}
}

func TestParseIDNamesTheLimit(t *testing.T) {
	_, err := doc.ParseID("u/" + strings.Repeat("a", 511))
	e, ok := err.(*doc.Error)
	if !ok || e.Members["limit"] != doc.MaxIDBytes || e.Members["actual"] != 513 {
		t.Errorf("the refusal names limit 512 and actual 513; got %v %v", err, e.Members)
	}
}

func TestPartsOfAnID(t *testing.T) {
	for _, c := range []struct {
		id                     doc.ID
		root, rest, collection string
	}{
		{"users/1", "users/1", "/", "users"},
		{"users/1/account", "users/1", "/account", "users/account"},
		{"users/1/account/3", "users/1", "/account/3", "users/account"},
		{"a/b/c/d/e", "a/b", "/c/d/e", "a/c/e"},
	} {
		if c.id.Root() != c.root || c.id.Rest() != c.rest || string(c.id.Collection()) != c.collection {
			t.Errorf("%s: root %q rest %q collection %q", c.id, c.id.Root(), c.id.Rest(), c.id.Collection())
		}
	}
}

// segment generates what may stand between two slashes.
func segment() *rapid.Generator[string] {
	return rapid.StringMatching(`[a-zA-Z0-9é$%+ "\\-]{1,8}`)
}

func anyID() *rapid.Generator[doc.ID] {
	return rapid.Custom(func(t *rapid.T) doc.ID {
		segs := rapid.SliceOfN(segment(), 2, 8).Draw(t, "segments")
		segs[0] = "c" + segs[0]
		return doc.ID(strings.Join(segs, "/"))
	})
}

func TestJoinIsTheInverseOfRootAndRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := anyID().Draw(t, "id")
		if _, err := doc.ParseID(string(id)); err != nil {
			t.Fatalf("generated id is refused: %v", err)
		}
		if got := doc.Join(id.Root(), id.Rest()); got != id {
			t.Fatalf("Join(%q, %q) = %q", id.Root(), id.Rest(), got)
		}
	})
}

func TestPrefixes(t *testing.T) {
	for _, c := range []struct {
		prefix   string
		in, out  []doc.ID
		wantRest string
	}{
		{"users/1", []doc.ID{"users/1", "users/1/account", "users/1/account/3"}, []doc.ID{"users/10", "users/2"}, ""},
		{"users/1/", []doc.ID{"users/1/account", "users/1/account/3"}, []doc.ID{"users/1", "users/10/x"}, "/"},
		{"users/1/account/1", []doc.ID{"users/1/account/1", "users/1/account/10"}, []doc.ID{"users/1/account", "users/1/account/2"}, "/account/1"},
		{"users/1/account/", []doc.ID{"users/1/account/1"}, []doc.ID{"users/1/account", "users/1/accounts/1"}, "/account/"},
	} {
		p, err := doc.ParsePrefix(c.prefix)
		if err != nil || p.Rest != c.wantRest || p.String() != c.prefix {
			t.Fatalf("ParsePrefix(%q) = %+v, %v", c.prefix, p, err)
		}
		for _, id := range c.in {
			if !p.Contains(id) {
				t.Errorf("%s contains %s", c.prefix, id)
			}
		}
		for _, id := range c.out {
			if p.Contains(id) {
				t.Errorf("%s does not contain %s", c.prefix, id)
			}
		}
	}
	for prefix, kind := range map[string]doc.Kind{
		"": doc.UnrootedPrefix, "/": doc.UnrootedPrefix, "users": doc.UnrootedPrefix, "users/": doc.UnrootedPrefix,
		"users//": doc.InvalidID, "users/./x": doc.InvalidID, "$canary/1": doc.InvalidID, "users/1//": doc.InvalidID,
	} {
		if _, err := doc.ParsePrefix(prefix); doc.KindOf(err) != kind {
			t.Errorf("ParsePrefix(%q) = %v, want %s", prefix, err, kind)
		}
	}
}

func TestParents(t *testing.T) {
	for _, ok := range []string{"users/", "users/1/account/"} {
		if got, err := doc.ParseParent(ok); err != nil || got+"/" != ok {
			t.Errorf("ParseParent(%q) = %q, %v", ok, got, err)
		}
	}
	for _, bad := range []string{"", "/", "users", "users/1/", "users//", "users/1/account", "$x/", "a/../b/"} {
		if _, err := doc.ParseParent(bad); doc.KindOf(err) != doc.InvalidID {
			t.Errorf("ParseParent(%q) = %v, want invalid-id", bad, err)
		}
	}
}

func TestCollections(t *testing.T) {
	for _, ok := range []string{"users", "users/account", "Ünïcode", "$canary"} {
		if _, err := doc.ParseCollection(ok); err != nil {
			t.Errorf("ParseCollection(%q): %v", ok, err)
		}
	}
	for _, bad := range []string{"", "/", "users/", "a//b", "a/b/c/d/e/f/g/h/i", "a\n"} {
		if _, err := doc.ParseCollection(bad); doc.KindOf(err) != doc.InvalidID {
			t.Errorf("ParseCollection(%q) = %v, want invalid-id", bad, err)
		}
	}
}
