package history

import "strings"

// generated are the letters of the five with which the API server ends a generateName. They have no vowels, so that few
// words are taken for one.
const generated = "bcdfghjklmnpqrstvwxz2456789"

// BaseName returns the name of a job without what makes it unique among its repetitions: a number, as a CronJob or a
// script adds, or the five letters of a generateName.
func BaseName(name string) string {
	for range 2 { // such as nightly-28391234-x7k2p
		at := strings.LastIndexByte(name, '-')
		if at <= 0 || !isUnique(name[at+1:]) {
			break
		}
		name = name[:at]
	}
	return name
}

func isUnique(suffix string) bool {
	isOf := func(letters string) bool {
		return suffix != "" && strings.IndexFunc(suffix, func(r rune) bool { return !strings.ContainsRune(letters, r) }) < 0
	}
	return isOf("0123456789") || len(suffix) == 5 && isOf(generated)
}

func splitName(full string) (namespace, name string) {
	namespace, name, _ = strings.Cut(full, "/")
	return namespace, name
}
