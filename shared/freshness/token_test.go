package freshness_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/shared/doc"
	"holdfast/shared/freshness"
)

func written(signals []doc.Signal) []doc.Written {
	var all []doc.Written
	for _, s := range signals {
		all = append(all, doc.Written{ID: s.ID, Version: s.Version})
	}
	return all
}

func TestTokensAreReadBack(t *testing.T) {
	segment := rapid.StringMatching(`[a-z0-9é漢"/]{1,9}`).Filter(func(s string) bool {
		_, err := doc.ParseStoredID("a/" + s)
		return err == nil
	})
	rapid.Check(t, func(t *rapid.T) {
		newest := map[doc.ID]doc.Version{}
		var signals []doc.Signal
		for range rapid.IntRange(0, 120).Draw(t, "documents") {
			s := doc.Signal{
				ID:      doc.ID(rapid.SampledFrom([]string{"users", "$canary", "orders"}).Draw(t, "collection") + "/" + segment.Draw(t, "key")),
				Version: doc.Version(rapid.Int64Range(1, 1<<53).Draw(t, "version")),
			}
			signals = append(signals, s)
			newest[s.ID] = max(newest[s.ID], s.Version)
		}
		token := freshness.Tokens(written(signals))
		if len(signals) == 0 {
			if token != "" {
				t.Fatalf("the token of nothing is %q", token)
			}
			return
		}
		got, err := freshness.ParseToken(token)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(newest) {
			t.Fatalf("%v became %v", signals, got)
		}
		for _, s := range got {
			if newest[s.ID] != s.Version {
				t.Fatalf("%v became %v", signals, got)
			}
		}
		// One altered character is noticed.
		at := rapid.IntRange(0, len(token)-1).Draw(t, "at")
		altered := token[:at] + string(rapid.SampledFrom([]byte("abcXYZ019-_")).Draw(t, "to")) + token[at+1:]
		if back, err := freshness.ParseToken(altered); altered != token && err == nil {
			t.Fatalf("%q, altered to %q, is read as %v", token, altered, back)
		}
	})
}

func TestTokensAreCompact(t *testing.T) {
	one := freshness.Tokens([]doc.Written{{ID: "users/1", Version: 1796029203123456}})
	if len(one) > 40 || strings.ContainsAny(one, "+/= ") {
		t.Errorf("the token of one document is %q", one)
	}
	var many []doc.Written
	for i := range 5000 {
		many = append(many, doc.Written{ID: doc.ID(fmt.Sprintf("flights/%d", i)), Version: doc.Version(1796029203123456 + i*731)})
	}
	token := freshness.Tokens(many)
	t.Logf("one document: %d characters; 5,000: %d", len(one), len(token))
	if len(token) > 8*len(many) {
		t.Errorf("the token of %d documents has %d characters", len(many), len(token))
	}
	got, err := freshness.ParseTokens([]string{one, token, one}, "/wait/tokens")
	if err != nil || len(got) != 5001 {
		t.Errorf("%d documents, %v", len(got), err)
	}
}

func TestDeletesOfNothingNeedNoWait(t *testing.T) {
	if token := freshness.Tokens([]doc.Written{{ID: "users/1"}}); token != "" {
		t.Errorf("got %q", token)
	}
}

func TestGarbageIsNoToken(t *testing.T) {
	seal := func(form byte, entries []byte) string {
		token := append([]byte{form}, entries...)
		return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(token, crc32.ChecksumIEEE(token)))
	}
	var bomb bytes.Buffer
	w, err := flate.NewWriter(&bomb, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		_, _ = w.Write(make([]byte, 1<<20))
	}
	_ = w.Close()
	entry := func(shared, length uint64, id string, version int64) []byte {
		b := binary.AppendUvarint(binary.AppendUvarint(nil, shared), length)
		return binary.AppendVarint(append(b, id...), version)
	}
	good := entry(0, 7, "users/1", 5)
	if _, err := freshness.ParseToken(seal(1, good)); err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"nothing":            "",
		"text":               "hello world",
		"base64":             "aGVsbG8gd29ybGQ",
		"padding":            "AQ==",
		"a future form":      seal(9, good),
		"no entries":         seal(1, nil),
		"half an entry":      seal(1, good[:5]),
		"no id":              seal(1, entry(0, 5, "users", 5)),
		"longer than itself": seal(1, entry(0, 1<<60, "users/1", 5)),
		"shares too much":    seal(1, entry(3, 7, "users/1", 5)),
		"no version":         seal(1, entry(0, 7, "users/1", 0)),
		"negative version":   seal(1, entry(0, 7, "users/1", -5)),
		"twice":              seal(1, append(slices.Clone(good), entry(7, 0, "", 1)...)),
		"not deflated":       seal(2, good),
		"a bomb":             seal(2, bomb.Bytes()),
	} {
		if got, err := freshness.ParseToken(token); doc.KindOf(err) != doc.InvalidQuery {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	_, err = freshness.ParseTokens([]string{seal(1, good), "x"}, "/wait/tokens")
	if e, ok := err.(*doc.Error); !ok || e.Members["pointer"] != "/wait/tokens/1" {
		t.Errorf("got %#v", err)
	}
}

func TestTooManyAwaited(t *testing.T) {
	var tokens []string
	for k := range 3 {
		var many []doc.Written
		for i := range freshness.MaxAwaited/2 - 1 {
			many = append(many, doc.Written{ID: doc.ID(fmt.Sprintf("f%d/%d", k, i)), Version: 5})
		}
		tokens = append(tokens, freshness.Tokens(many))
	}
	if got, err := freshness.ParseTokens(tokens[:2], ""); err != nil || len(got) != freshness.MaxAwaited-2 {
		t.Errorf("%d, %v", len(got), err)
	}
	// The same documents again are not more of them.
	if got, err := freshness.ParseTokens(append(tokens[:2:2], tokens[0]), ""); err != nil || len(got) != freshness.MaxAwaited-2 {
		t.Errorf("%d, %v", len(got), err)
	}
	if _, err := freshness.ParseTokens(tokens, ""); doc.KindOf(err) != doc.QueryTooCostly {
		t.Errorf("got %v", err)
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(freshness.Tokens([]doc.Written{{ID: "users/1", Version: 5}, {ID: "users/2", Version: 7}}))
	f.Fuzz(func(t *testing.T, s string) {
		signals, err := freshness.ParseToken(s)
		if err == nil && freshness.Tokens(written(signals)) == "" {
			t.Errorf("%q is read as nothing", s)
		}
	})
}
