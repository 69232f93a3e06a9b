package tree

import (
	"strconv"
	"strings"
)

// join is the path of a key below path. What a terminal would not show as it stands is
// quoted.
func join(path, key string) string {
	if key == "" || strings.ContainsAny(key, ".[] \"") || len(key) > 64 || strconv.Quote(key) != `"`+key+`"` {
		return path + "[" + quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// quote is s in quotes, shortened where it is long.
func quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:57]) + "..."
	}
	return strconv.Quote(s)
}

// Nearest is the candidate most like word, "" if none is near: at most one edit for short
// words and one for every three letters of others, a swap of neighbours being one, and
// some of the word left. A word that a candidate begins with is one edit away from it.
func Nearest(word string, candidates []string) string {
	best, least := "", 1+max(1, len(word)/3)
	if len(word) > 64 {
		return ""
	}
	for _, c := range candidates {
		d := distance(word, c)
		if len(word) >= 3 && strings.HasPrefix(c, word) {
			d = min(d, 1)
		}
		if d < least && d < len(word) {
			best, least = c, d
		}
	}
	return best
}

// distance is the least number of insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			swap := 0
			if a[i-1] != b[j-1] {
				swap = 1
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+swap)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
