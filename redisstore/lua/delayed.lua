-- algo/delayed.go: at is the start of the open window, a the units in it, b those in the
-- window before; seen is what is known of instances.

-- numbered reports whether a flush is new, and remembers it.
local function numbered(d, f, oldest)
  local kept, fresh, known = {idle = d.idle, last = d.last}, true, false
  for _, i in ipairs(d) do
    if i[1] == f.instance then
      known, fresh = true, f.number > i[2]
      kept[#kept + 1] = {i[1], max(i[2], f.number), d.last}
    elseif i[3] > oldest then
      kept[#kept + 1] = i
    end
  end
  if not known then kept[#kept + 1] = {f.instance, f.number, d.last} end
  return fresh, kept
end

-- openDelayed makes the window that holds now the open one, and returns its end.
local function openDelayed(p, s, now, open)
  local stop
  if open then
    stop = finish(p, s.at)
    if now < stop then return stop end
  end
  local start = window(p, now)
  local before = 0
  if open and start == stop then before = s.a end
  s.at, s.a = start, 0
  if s.b then s.b = before end
  return finish(p, start)
end

-- flush answers: at, window, rest, used, remaining, late.
local function flush(p, s, now, f)
  local d, open = s.seen, true
  if not d then
    open = p.kind == 's' or s.lease ~= nil or s.a > 0
    d = {idle = 0, last = s.at}
  end
  now = max(now, d.last, s.at)
  if s.lease then now = rollLent(p.per, s, now) end
  d.last = now
  local stop = openDelayed(p, s, now, open)
  local span = p.cuts and stop - s.at or p.per
  local fresh, late = nil, 0
  fresh, s.seen = numbered(d, f, now - 2 * span)
  s.seen.idle = now + 2 * span
  for i = 1, #f.parts, 3 do
    local from, past, units = f.parts[i], f.parts[i + 1], max(0, f.parts[i + 2])
    if not fresh then units = 0 end
    if from >= s.at or now < past + max(0, f.interval) then
      s.a = s.a + min(units, p.most - s.a)
    elseif s.b and past == s.at then
      s.b = s.b + min(units, p.most - s.b)
    else
      late = late + units
    end
  end
  local left = p.count - s.a
  if s.b and left > 0 then left = left - weighted(p, min(s.b, p.count), s.at, now) end
  return now, s.at, stop - now, s.a, max(0, left), late
end

-- flushLent is flush on a lent rolling window, which judges sliding windows of its period: what is
-- reported is charged there, in the bucket of its window's end at the latest.
local function flushLent(p, s, now, f)
  local l, g = s.lease, own(p, s)
  now = max(now, l.last)
  l.last = now
  local start, fresh, late = window(p, now), nil, 0
  fresh, s.seen = numbered(s.seen or {idle = 0, last = now}, f, now - 2 * p.per)
  s.seen.idle, s.seen.last = now + 2 * p.per, now
  for i = 1, #f.parts, 3 do
    local from, past, units = f.parts[i], f.parts[i + 1], max(0, f.parts[i + 2])
    if not fresh then units = 0 end
    if from >= start or now < past + max(0, f.interval) then
      moveLent(p, s, now, now, units)
    elseif past == start then
      moveLent(p, s, now, past - 1, units)
    else
      late = late + units
    end
  end
  local used, newest = 0, s.at / g.width
  for j = floor(start / g.width), max(newest, l.top) do used = used + chargedLent(g, s, j) end
  local _, all = lookLent(p, s, now, 0)
  return now, start, start + p.per - now, used, max(0, p.count - all), late
end
