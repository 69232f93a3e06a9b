-- What a record has besides its state, in lines after it, while quota of it is lent in
-- advance or instances report to it.
--
-- L: until when it means something, the latest instant seen, the demand (epoch, number, rate, and
-- number and rate of the epoch before), up to which window or bucket nothing is taken back, and of
-- a fixed window the units lent of the next one. Of a rolling window how many buckets after the
-- newest follow, in two rows of little-endian 32-bit words: the units charged to each, and those
-- that may not be used before it.
--
-- D: until when it means something, the latest instant seen, and of each instance its number,
-- that of its last flush, and when it came.
--
-- A state that was lent has its lease beside it, and then at and a are of the instant that it was
-- brought to. Where the window rolls, the ring of a rolling window gets what was charged ahead.

local match, gmatch, rep = string.match, string.gmatch, string.rep

-- shapes are the rolling windows of records, by their text.
local shapes = {}

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
  return {idle = 0, last = last, epoch = 0, number = 0, rate = 0, lastNumber = 0, lastRate = 0, closed = 0, next = 0, c = {}, f = {}, top = 0}
end

-- row reads n words of ring after its first byte from, as those of buckets after the newest.
local function row(into, ring, from, newest, n)
  for k = 1, n do
    local units = (struct.unpack('<I4', ring, from + 4 * k - 3))
    if units > 0 then into[newest + k] = units end
  end
end

-- parts takes apart what follows the first line of a record; false if it is not whole.
local function parts(s, rest)
  local g = shape(s.text)
  if g and #rest > 4 * g.size then
    s.ring = sub(rest, 1, 4 * g.size)
    rest = sub(rest, 4 * g.size + 1)
  elseif g or byte(s.text) == 108 then
    s.ring = rest
    return true
  else
    rest = '\n' .. rest
  end
  local idle, last, epoch, number, rate, ln, lr, closed, ahead, more =
    match(rest, '^\nL (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)(.*)$')
  if idle then
    local l = {idle = idle + 0, last = last + 0, epoch = epoch + 0, number = number + 0, rate = rate + 0, lastNumber = ln + 0, lastRate = lr + 0, closed = closed + 0, next = 0, c = {}, f = {}, top = 0}
    s.lease, rest = l, more
    if not g then
      l.next = ahead + 0
    else
      local newest, n = s.at / g.width, ahead + 0
      if #rest ~= 1 + 8 * n or byte(rest) ~= 10 then return false end
      row(l.c, rest, 1, newest, n)
      row(l.f, rest, 1 + 4 * n, newest, n)
      l.top = newest + n
      return true
    end
  end
  if rest == '' then return true end
  if g then return false end
  local until_, seen, list = match(rest, '^\nD (%d+) (%d+)([ %d]*)$')
  if not until_ then return false end
  s.seen = {idle = until_ + 0, last = seen + 0}
  for a, b, c in gmatch(list, ' (%d+) (%d+) (%d+)') do s.seen[#s.seen + 1] = {a + 0, b + 0, c + 0} end
  return true
end

local function words(t, first, last)
  local all = {}
  for j = first, last do all[#all + 1] = struct.pack('<I4', t[j] or 0) end
  return table.concat(all)
end

-- write saves a state with all that it has.
local function write(key, s, p, now, margin)
  local l, d = s.lease, s.seen
  if not l and not d then return save(key, s, p, now, margin) end
  local left, text = 0, nil
  local g = s.ring and shape(s.text)
  if l then
    l.last = max(l.last, now)
    left = l.idle - now
    local ahead = l.next
    if g then
      local newest = s.at / g.width
      ahead = max(0, l.top - newest)
      left = max(left, (newest + ahead + g.size) * g.width - now)
    else
      left = max(left, s.at + 2 * p.per - now)
    end
    text = format('\nL %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f', l.idle, l.last, l.epoch, l.number, l.rate, l.lastNumber, l.lastRate, l.closed, ahead)
    if g then
      local newest = s.at / g.width
      text = format('1 %016d %016d %s\n', s.at, s.a, s.text) .. s.ring .. text .. '\n' .. words(l.c, newest + 1, newest + ahead) .. words(l.f, newest + 1, newest + ahead)
    end
  end
  if not g then
    left = max(left, reset[p.kind](p, s, max(now, s.at)))
    text = head(s, p, now) .. (text or '')
    if d then
      left = max(left, d.idle - now)
      local all = {format('\nD %.0f %.0f', d.idle, d.last)}
      for _, i in ipairs(d) do all[#all + 1] = format(' %.0f %.0f %.0f', i[1], i[2], i[3]) end
      text = text .. table.concat(all)
    end
  end
  call('SET', key, text, 'PX', format('%d', max(0, min(INSTANT, left)) / 1000 + 1 + margin))
end
