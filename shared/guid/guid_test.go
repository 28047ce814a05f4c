package guid_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"holdfast/shared/guid"
)

func parse(t *testing.T, text string) guid.GUID {
	t.Helper()
	g, err := guid.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return g
}

// The example of .NET's documentation of Guid.ToByteArray.
func TestStoredBytesAreThoseOfDotNet(t *testing.T) {
	stored := parse(t, "35918bc9-196d-40ea-9779-889d79b753f0").Stored()
	if got := hex.EncodeToString(stored[:]); got != "c98b91356d19ea409779889d79b753f0" {
		t.Error(got)
	}
}

func sorted(l guid.Layout, all []guid.GUID) (texts []string) {
	all = slices.Clone(all)
	slices.SortFunc(all, l.Compare)
	for _, g := range all {
		texts = append(texts, g.String())
	}
	return texts
}

// The examples of Microsoft: "Comparing GUID and uniqueidentifier Values" of
// ADO.NET's documentation, and "How are GUIDs compared in SQL Server 2005?".
func TestOrdersThatMicrosoftDocuments(t *testing.T) {
	example := []guid.GUID{
		parse(t, "3AAAAAAA-BBBB-CCCC-DDDD-2EEEEEEEEEEE"), parse(t, "2AAAAAAA-BBBB-CCCC-DDDD-1EEEEEEEEEEE"), parse(t, "1AAAAAAA-BBBB-CCCC-DDDD-3EEEEEEEEEEE"),
	}
	if got := strings.Join(sorted(guid.Text, example), " "); got != "1aaaaaaa-bbbb-cccc-dddd-3eeeeeeeeeee 2aaaaaaa-bbbb-cccc-dddd-1eeeeeeeeeee 3aaaaaaa-bbbb-cccc-dddd-2eeeeeeeeeee" {
		t.Errorf("text: %s", got)
	}
	if got := strings.Join(sorted(guid.SQLServer, example), " "); got != "2aaaaaaa-bbbb-cccc-dddd-1eeeeeeeeeee 3aaaaaaa-bbbb-cccc-dddd-2eeeeeeeeeee 1aaaaaaa-bbbb-cccc-dddd-3eeeeeeeeeee" {
		t.Errorf("sqlserver: %s", got)
	}
	g1, g2 := parse(t, "55666BEE-B3A0-4BF5-81A7-86FF976E763F"), parse(t, "8DD5BCA5-6ABE-4F73-B4B7-393AE6BBB849")
	if guid.SQLServer.Compare(g1, g2) <= 0 || guid.SQLServer.Compare(g2, g1) >= 0 || guid.Text.Compare(g1, g2) >= 0 {
		t.Error("the two of the article")
	}
}

// One bit in each place of the text, from the least to the weightiest place. For
// SQL Server that is what its ORDER BY gives, as can be read in many articles.
func TestWeightOfEachPlace(t *testing.T) {
	for layout, places := range map[guid.Layout][]string{
		guid.SQLServer: {
			"01000000-0000-0000-0000-000000000000", "00010000-0000-0000-0000-000000000000",
			"00000100-0000-0000-0000-000000000000", "00000001-0000-0000-0000-000000000000",
			"00000000-0100-0000-0000-000000000000", "00000000-0001-0000-0000-000000000000",
			"00000000-0000-0100-0000-000000000000", "00000000-0000-0001-0000-000000000000",
			"00000000-0000-0000-0001-000000000000", "00000000-0000-0000-0100-000000000000",
			"00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000100",
			"00000000-0000-0000-0000-000000010000", "00000000-0000-0000-0000-000001000000",
			"00000000-0000-0000-0000-000100000000", "00000000-0000-0000-0000-010000000000",
		},
		// The bytes of ToByteArray from the last to the first.
		guid.Binary: {
			"00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000100",
			"00000000-0000-0000-0000-000000010000", "00000000-0000-0000-0000-000001000000",
			"00000000-0000-0000-0000-000100000000", "00000000-0000-0000-0000-010000000000",
			"00000000-0000-0000-0001-000000000000", "00000000-0000-0000-0100-000000000000",
			"00000000-0000-0100-0000-000000000000", "00000000-0000-0001-0000-000000000000",
			"00000000-0100-0000-0000-000000000000", "00000000-0001-0000-0000-000000000000",
			"01000000-0000-0000-0000-000000000000", "00010000-0000-0000-0000-000000000000",
			"00000100-0000-0000-0000-000000000000", "00000001-0000-0000-0000-000000000000",
		},
	} {
		var all []guid.GUID
		for _, text := range places {
			all = append(all, parse(t, text))
		}
		slices.Reverse(all)
		if got := sorted(layout, all); !slices.Equal(got, places) {
			t.Errorf("%s:\n%s", layout, strings.Join(got, "\n"))
		}
	}
}

// sqlGuidOrder is the order in which .NET's SqlGuid compares the stored bytes.
var sqlGuidOrder = []int{10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3}

func TestComparatorsOfAnyTwo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		any16 := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x7f, 0x80, 0xff}), 16, 16)
		a, b := guid.GUID(any16.Draw(t, "a")), guid.GUID(any16.Draw(t, "b"))
		x, y := a.Stored(), b.Stored()
		sql := 0
		for _, i := range sqlGuidOrder {
			if x[i] != y[i] {
				sql = int(x[i]) - int(y[i])
				break
			}
		}
		for layout, want := range map[guid.Layout]int{
			guid.Text:      strings.Compare(a.String(), b.String()),
			guid.Binary:    strings.Compare(string(x[:]), string(y[:])),
			guid.SQLServer: sql,
		} {
			got := layout.Compare(a, b)
			if (got < 0) != (want < 0) || (got > 0) != (want > 0) || (got == 0) != (a == b) {
				t.Fatalf("%s: %s and %s: %d", layout, a, b, got)
			}
		}
	})
}

func TestTextAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := guid.GUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "octets"))
		if g.String() != uuid.UUID(g).String() {
			t.Fatalf("%s, not %s", g, uuid.UUID(g))
		}
		for _, text := range []string{g.String(), strings.ToUpper(g.String())} {
			if back, err := guid.Parse(text); err != nil || back != g {
				t.Fatalf("%s: %s, %v", text, back, err)
			}
		}
	})
	for _, text := range []string{
		"", "35918bc9196d40ea9779889d79b753f0", "35918bc9-196d-40ea-9779-889d79b753f", "35918bc9-196d-40ea-9779-889d79b753f00",
		"{5918bc9-196d-40ea-9779-889d79b753f0", "35918bc9-196d-40ea-9779-889d79b753fg", "35918bc91-96d-40ea-9779-889d79b753f0",
	} {
		if g, err := guid.Parse(text); err == nil || g != (guid.GUID{}) {
			t.Errorf("%q is taken", text)
		}
	}
}
