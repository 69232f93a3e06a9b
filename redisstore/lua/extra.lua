return {parts = parts, write = write, lent = lent, flatten = flatten, look = lookLent, take = takeLent, move = moveLent, show = show}
