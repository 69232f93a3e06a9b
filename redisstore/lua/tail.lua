-- What a record has besides its state, in lines after it, while quota of it is lent in
-- advance or instances report to it.
--
-- M, then ten little-endian 64-bit words: its version, until when it means something, the latest instant seen,
-- the demand (epoch, number, rate, and number and rate of the epoch before), up to which window or
-- bucket nothing is taken back, and of a fixed window the units lent of the next one; of a rolling
-- one how many buckets after the newest follow, in two rows of 32-bit words: the units charged to
-- each, and those that may not be used before it. L is the same without the version, which is 0 then.
-- Of a token bucket the rows begin with the bucket of time of the latest instant, and follow their width.
--
-- D, then numbers: until when it means something, the latest instant seen, and of each instance its
-- number, that of its last flush, and when it came.
--
-- A state that was lent has its lease beside it, and then at and a are of the instant that it was
-- brought to. Where the window rolls, the ring of a rolling window gets what was charged ahead.

local match, gmatch, rep = string.match, string.gmatch, string.rep
local pack, unpackAll = struct.pack, struct.unpack
local LEASE = '<I8I8I8I8I8I8I8I8I8I8'

-- shapes are the rolling windows of records, by their text; forms the formats of rows of words.
local shapes, forms = {}, {}

local function form(n)
  local f = forms[n]
  if not f then
    f = '<' .. rep('I4', n)
    forms[n] = f
  end
  return f
end

local function shape(text)
  local g = shapes[text]
  if not g then
    local per, width, buckets = match(text, '^r (%d+) (%d+) (%d+)$')
    if not per then return nil end
    g = {per = per + 0, width = width + 0, buckets = buckets + 0, size = buckets + 1}
    shapes[text] = g
  end
  return g
end

local function lease(last)
  return {ver = 0, idle = 0, last = last, epoch = 0, number = 0, rate = 0, lastNumber = 0, lastRate = 0, closed = 0, next = 0, c = {}, f = {}, top = 0}
end

-- rows reads two rows of n words of text from a position on, of buckets after the newest.
local function rows(l, text, from, newest, n)
  local all = {unpackAll(form(2 * n), text, from)}
  local c, f = l.c, l.f
  for k = 1, n do
    if all[k] > 0 then c[newest + k] = all[k] end
    if all[n + k] > 0 then f[newest + k] = all[n + k] end
  end
end

-- parts takes apart what follows the first line of a record; false if it is not whole.
local function parts(s, rest)
  local g, from = shape(s.text), 1
  if g then
    s.ring = sub(rest, 1, 4 * g.size)
    from = 4 * g.size + 2
    if byte(rest, from - 1) ~= 10 then return false end
  end
  local mark = byte(rest, from)
  if mark == 76 then rest = sub(rest, 1, from) .. rep('\0', 8) .. sub(rest, from + 1) end
  if mark == 76 or mark == 77 then
    if #rest < from + 80 then return false end
    local l, ahead = {c = {}, f = {}, top = 0, next = 0}, 0
    l.ver, l.idle, l.last, l.epoch, l.number, l.rate, l.lastNumber, l.lastRate, l.closed, ahead = unpackAll(LEASE, rest, from + 1)
    s.lease, from = l, from + 81
    if byte(s.text) == 98 then
      if #rest < from + 7 + 8 * ahead then return false end
      l.width = unpackAll('<I8', rest, from)
      if l.width < 1 then return false end
      local newest = floor(l.last / l.width)
      if ahead > 0 then rows(l, rest, from + 8, newest - 1, ahead) end
      l.top, from = newest + ahead - 1, from + 8 + 8 * ahead
    elseif not g then
      l.next = ahead
    else
      local newest = s.at / g.width
      if #rest < from - 1 + 8 * ahead then return false end
      if ahead > 0 then rows(l, rest, from, newest, ahead) end
      l.top, from = newest + ahead, from + 8 * ahead
    end
    if from > #rest then return true end
    if byte(rest, from) ~= 10 then return false end
    from = from + 1
  end
  if g and not s.lease then return false end
  local idle, last, list = match(rest, '^D (%d+) (%d+)([ %d]*)$', from)
  if not idle then return false end
  s.seen = {idle = idle + 0, last = last + 0}
  local i = {}
  for d in gmatch(list, '%d+') do
    i[#i + 1] = d + 0
    if #i == 3 then s.seen[#s.seen + 1], i = i, {} end
  end
  return #i == 0
end

local function words(t, first, last, t2)
  local all, n = {}, last - first + 1
  if n < 1 then return '' end
  for k = 1, n do
    all[k] = t[first + k - 1] or 0
    if t2 then all[n + k] = t2[first + k - 1] or 0 end
  end
  return pack(form(#all), unpack(all))
end

-- unlevel undoes what level in lease_bucket.lua did.
local function unlevel(s, unit)
  local l = s.lease
  if l.apart then s.a, l.apart = max(min(MAX, s.a - l.apart), l.out * unit), nil end
end

-- slice is the words of a ring for n buckets from first on.
local function slice(g, s, first, n)
  local i = first % g.size
  local fit = min(n, g.size - i)
  local all = {unpackAll(form(fit), s.ring, 4 * i + 1)}
  all[fit + 1] = nil
  if fit < n then
    local more = {unpackAll(form(n - fit), s.ring, 1)}
    for k = 1, n - fit do all[fit + k] = more[k] end
  end
  return all
end

-- write saves a state with all that it has.
local function write(key, s, p, now, margin)
  local l, d = s.lease, s.seen
  if not l and (not d or s.ring) then return save(key, s, p, now, margin) end
  local left, text = 0, nil
  local g = s.ring and shape(s.text)
  if l then
    l.last = max(l.last, now)
    left = l.idle - now
    local ahead, row = l.next, ''
    if l.width then
      local newest = floor(l.last / l.width)
      ahead = max(0, l.top - newest + 1)
      left = max(left, (l.top + 1) * l.width - now)
      row = pack('<I8', l.width) .. words(l.c, newest, newest + ahead - 1, l.f)
      unlevel(s, p.p)
    elseif g then
      local newest = s.at / g.width
      ahead = max(0, l.top - newest)
      left = max(left, (newest + ahead + g.size) * g.width - now)
    else
      left = max(left, s.at + 2 * p.per - now)
    end
    text = '\nM' .. pack(LEASE, l.ver, l.idle, l.last, l.epoch, l.number, l.rate, l.lastNumber, l.lastRate, l.closed, ahead) .. row
    if g then
      local newest = s.at / g.width
      text = format('1 %016d %016d %s\n', s.at, s.a, s.text) .. s.ring .. text .. words(l.c, newest + 1, newest + ahead, l.f)
    end
  end
  if not g then
    left = max(left, reset[p.kind](p, s, max(now, s.at)))
    text = head(s, p, now) .. (text or '')
  end
  if d then
    left = max(left, d.idle - now)
    local all = {format('\nD %.0f %.0f', d.idle, d.last)}
    for _, i in ipairs(d) do all[#all + 1] = format(' %.0f %.0f %.0f', i[1], i[2], i[3]) end
    text = text .. table.concat(all)
  end
  call('SET', key, text, 'PX', format('%d', max(0, min(INSTANT, left)) / 1000 + 1 + margin))
end
