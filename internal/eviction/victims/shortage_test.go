package victims

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/resources"
)

// No set of offers that makes room is smaller than the bounds say.
func TestBoundsHoldForEverySetOfOffers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amounts := func(most int64) *rapid.Generator[resources.Vector] {
			return rapid.Custom(func(t *rapid.T) (v resources.Vector) {
				for d := range 2 {
					v.Set(resources.Dim(d), rapid.Int64Range(0, most).Draw(t, "amount"))
				}
				return v
			})
		}
		request, future := amounts(12).Draw(t, "request"), amounts(6).Draw(t, "future")
		offers := rapid.SliceOfN(amounts(5), 1, 7).Draw(t, "offers")
		var total resources.Vector
		for _, o := range offers {
			total.Add(o)
		}
		short, isPossible := shortagesOf(request, future, total)
		for _, o := range offers {
			for i := range short {
				short[i].add(o)
			}
		}
		var x extremes
		x.include(future, offers...)
		for set := range 1 << len(offers) {
			room := future.Clone()
			for i, o := range offers {
				if set>>i&1 == 1 {
					room.Add(o)
				}
			}
			if !request.LessEqual(room) {
				continue
			}
			if !isPossible {
				t.Fatalf("the offers %b are enough, and all together are said not to be", set)
			}
			for i, o := range offers {
				if set>>i&1 == 1 && int(moreBesides(o, short)) > bits.OnesCount(uint(set))-1 {
					t.Fatalf("the offers %b are enough, and besides number %d at least %d are said to be needed", set, i, moreBesides(o, short))
				}
			}
			if count := bits.OnesCount(uint(set)); len(short) > 0 && int(x.moreBesidesAny(request)) > count-1 {
				t.Fatalf("the offers %b are enough, and at least %d are said to be needed besides the first", set, x.moreBesidesAny(request))
			}
		}
		for i := range short {
			if isPossible != short[i].isCovered() {
				t.Fatalf("possible is %t, and resource %d is covered: %t", isPossible, short[i].dim, short[i].isCovered())
			}
		}
	})
}
