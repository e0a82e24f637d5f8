package apiserver

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"

	"hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/client/clientset/versioned/scheme"
)

// seen is an event of a watch, decoded.
type seen struct {
	Type   watch.EventType
	Object runtime.Object
	IsRead bool
}

// readWith decodes a stream until its end or an error.
func readWith(t testing.TB, serializer runtime.NegotiatedSerializer, stream []byte) []seen {
	t.Helper()
	objects, events, framer, err := runtime.NewClientNegotiator(serializer, schema.GroupVersion{Group: v1beta1.GroupName, Version: "v1beta1"}).
		StreamDecoder(runtime.ContentTypeJSON, nil)
	if err != nil {
		t.Fatal(err)
	}
	decoder := restwatch.NewDecoder(streaming.NewDecoder(framer.NewFrameReader(io.NopCloser(bytes.NewReader(stream))), events), objects)
	var all []seen
	for {
		kind, object, err := decoder.Decode()
		all = append(all, seen{kind, object, err == nil})
		if err != nil {
			return all
		}
	}
}

const someGroup = `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"g","namespace":"n","uid":"u","resourceVersion":"7",` +
	`"labels":{"a\"}":"\\"}},"spec":{"minMember":3,"minResources":{"cpu":"3"},"queue":"q"},"status":{"phase":"Inqueue"}}`

func TestQuickDecodingIsTheStandardDecoding(t *testing.T) {
	event := func(kind, object string) string { return `{"type":"` + kind + `","object":` + object + "}\n" }
	for name, stream := range map[string]string{
		"nothing":                "",
		"PodGroups":              event("ADDED", someGroup) + event("MODIFIED", someGroup) + event("DELETED", someGroup),
		"a Queue":                event("ADDED", `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"q"},"spec":{"weight":2}}`),
		"a bookmark":             event("BOOKMARK", `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"resourceVersion":"9"}}`),
		"an error":               event("ERROR", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","code":410}`) + event("ADDED", someGroup),
		"another order":          `{"object":` + someGroup + `,"type":"ADDED"}`,
		"more than an object":    `{"type":"ADDED","object":` + someGroup + `,"more":{"a":{}}}`,
		"other space":            "{\"type\": \"ADDED\", \"object\": " + someGroup + "}",
		"space after it":         event("ADDED", someGroup+" \t"),
		"an unknown kind":        event("ADDED", `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Other","metadata":{}}`),
		"another group":          event("ADDED", `{"apiVersion":"a/b/c","kind":"PodGroup","metadata":{}}`),
		"no kind":                event("ADDED", `{"metadata":{}}`),
		"no object":              `{"type":"ADDED","object":null}`,
		"a kind with a mark":     event("ADDED", `{"apiVersion":"scheduling.volcano.sh\/v1beta1","kind":"PodGroup","metadata":{"name":"g"}}`),
		"an unknown type":        event("CHANGED", someGroup),
		"an unreadable group":    event("ADDED", `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"g","uid":"u"},"spec":{"minMember":"three"}}`),
		"one without a UID":      event("ADDED", `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"g"},"spec":{"minMember":"three"}}`),
		"a stream that breaks":   event("ADDED", someGroup) + `{"type":"ADDED","object":{"apiVersion":"sched`,
		"a list":                 event("ADDED", `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroupList","metadata":{},"items":[`+someGroup+`]}`),
		"not an event":           `[1]`,
		"an object that is text": event("ADDED", `"{}"`),
	} {
		t.Run(name, func(t *testing.T) {
			standard := readWith(t, scheme.Codecs.WithoutConversion(), []byte(stream))
			quick := readWith(t, quickSerializer{scheme.Codecs.WithoutConversion()}, []byte(stream))
			if difference := cmp.Diff(standard, quick); difference != "" {
				t.Errorf("(-standard +quick):\n%s", difference)
			}
		})
	}
}

// What the test above compares must not be the slow path on both sides.
func TestEventsOfTheAPIServerAreDecodedQuickly(t *testing.T) {
	stream := bytes.Repeat([]byte(`{"type":"ADDED","object":`+someGroup+"}\n"), 100)
	quick := testing.AllocsPerRun(10, func() { readWith(t, quickSerializer{scheme.Codecs.WithoutConversion()}, stream) }) / 100
	standard := testing.AllocsPerRun(10, func() { readWith(t, scheme.Codecs.WithoutConversion(), stream) }) / 100
	if quick > standard-5 {
		t.Errorf("one event takes %.0f allocations, and %.0f with the standard decoder", quick, standard)
	}
}

// listOf is a list of objects as the API server writes it.
func listOf(objects ...string) string {
	return `{"apiVersion":"scheduling.volcano.sh/v1beta1","items":[` + strings.Join(objects, ",") +
		`],"kind":"PodGroupList","metadata":{"continue":"next","remainingItemCount":3,"resourceVersion":"12"}}` + "\n"
}

func TestQuickDecodingOfAListIsTheStandardDecoding(t *testing.T) {
	marks := `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"h","annotations":{"a":"}\\","b":"\"{[","c":"\\\""}}}`
	for name, test := range map[string]string{
		"none": listOf(), "one": listOf(someGroup), "some": listOf(someGroup, marks, someGroup), "null": listOf("null", someGroup),
		"a broken one":     listOf(someGroup, `{"metadata":{"name":}}`),
		"an unreadable":    listOf(`{"metadata":{"name":"g","uid":"u"},"spec":{"minMember":"three"}}`, someGroup),
		"without a UID":    listOf(`{"metadata":{"name":"g"},"spec":{"minMember":"three"}}`, someGroup),
		"two lists in one": strings.Replace(listOf(someGroup), `],"kind"`, `],"items":[`+marks+`],"kind"`, 1),
		"another order":    `{"kind":"PodGroupList","apiVersion":"scheduling.volcano.sh/v1beta1","metadata":{},"items":[` + someGroup + `]}`,
		"other space":      strings.Replace(listOf(someGroup, marks), "},{", "}, {", 1),
		"another kind":     strings.Replace(listOf(someGroup), "PodGroupList", "QueueList", 1),
		"a status":         `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":410}`,
		"no end":           strings.TrimSuffix(listOf(someGroup), "}}\n"), "half": listOf(someGroup)[:150], "more": listOf(someGroup) + "x", "nothing": "",
		"text": listOf(`"{}"`), "a number after it": listOf(someGroup, "1"), "a comma after it": listOf(someGroup, ""),
	} {
		t.Run(name, func(t *testing.T) {
			read := func(serializer runtime.NegotiatedSerializer) (list v1beta1.PodGroupList, kind *schema.GroupVersionKind, isRead bool) {
				info, _ := runtime.SerializerInfoForMediaType(serializer.SupportedMediaTypes(), runtime.ContentTypeJSON)
				_, kind, err := info.Serializer.Decode([]byte(test), nil, &list)
				return list, kind, err == nil
			}
			standard, standardKind, standardIsRead := read(scheme.Codecs.WithoutConversion())
			quick, quickKind, quickIsRead := read(quickSerializer{scheme.Codecs.WithoutConversion()})
			if quickIsRead != standardIsRead {
				t.Fatalf("it is read: %v, and by the standard decoder: %v", quickIsRead, standardIsRead)
			}
			if difference := cmp.Diff(standard, quick) + cmp.Diff(standardKind, quickKind); difference != "" && standardIsRead {
				t.Errorf("(-standard +quick):\n%s", difference)
			}
		})
	}
}

func TestListsOfTheAPIServerAreDecodedQuickly(t *testing.T) {
	var list v1beta1.PodGroupList
	if _, isRead := (quickJSON{standardJSON()}).decodeList([]byte(listOf(someGroup, someGroup)), nil, &list); !isRead || len(list.Items) != 2 {
		t.Errorf("a list of two PodGroups is read: %v, with %d", isRead, len(list.Items))
	}
}

func standardJSON() runtime.Serializer {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.WithoutConversion().SupportedMediaTypes(), runtime.ContentTypeJSON)
	return info.Serializer
}

func BenchmarkDecodePodGroupList(b *testing.B) {
	list := []byte(listOf(slices.Repeat([]string{someGroup}, 100)...))
	for name, serializer := range map[string]runtime.Serializer{"standard": standardJSON(), "quick": quickJSON{standardJSON()}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := serializer.Decode(list, nil, &v1beta1.PodGroupList{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecodePodGroups(b *testing.B) {
	stream := bytes.Repeat([]byte(`{"type":"ADDED","object":`+someGroup+"}\n"), 100)
	for name, serializer := range map[string]runtime.NegotiatedSerializer{
		"standard": scheme.Codecs.WithoutConversion(), "quick": quickSerializer{scheme.Codecs.WithoutConversion()},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				readWith(b, serializer, stream)
			}
		})
	}
}
