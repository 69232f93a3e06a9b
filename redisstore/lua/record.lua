-- What a record says and how it is brought under the caller's plan.

-- extra is what only records have of which quota is lent or to which instances report. It is made
-- when it is needed: a function costs as much to make as to call.
local made

local function extra()
  made = made or makeExtra()
  return made
end

local plans = {
  b = bucketPlan, p = bucketPlan, f = fixedPlan, u = fixedPlan,
  c = calendarPlan, s = slidingPlan, r = ringPlan, l = logPlan,
}

-- family groups plans that judge alike; first-use and calendar windows are fixed ones.
local family = {b = 'b', p = 'p', f = 'f', u = 'f', c = 'f', s = 's', r = 'r', l = 'l'}

local function plan(text, numbers, since)
  local kind = sub(text, 1, 1)
  local p = plans[kind](numbers)
  p.text, p.name, p.kind, p.first, p.since = text, kind, family[kind], kind == 'u', since
  return p
end

-- foreign is the plan that wrote a record, from its text alone.
local function foreign(text)
  local numbers = {}
  for d in string.gmatch(text, '%S+') do numbers[#numbers + 1] = tonumber(d) end
  return plan(text, numbers)
end

local function fresh(p)
  return {at = 0, a = 0, b = p.kind == 's' and 0 or nil, text = p.text}
end

local forms = {
  b = '^b %d+ %d+ %d+ %d+$', p = '^p %d+ %d+ %d+ %d+$', f = '^f %d+$', u = '^u %d+$', c = '^c .+$',
  s = '^s %d+ %d+$', r = '^r %d+ %d+ (%d+)$', l = '^l %d+ %d+$',
}

-- whole reports whether a record has all that its plan needs.
local function whole(text, a, b, ring)
  local kind = sub(text, 1, 1)
  local form = forms[kind]
  local found = form and string.match(text, form)
  if not found or (kind == 's') ~= (b ~= nil) then return false end
  if kind == 'r' then return ring ~= nil and #ring == 4 * (found + 1) end
  if kind == 'l' then return ring ~= nil and #ring == 8 * a end
  return ring == nil
end

-- load is the state of a record, or nil and what is wrong with it: -2 an unknown version
-- of the format, with its first byte; -3 not a string; -4 not a record.
local function load(key, p)
  local r = redis.pcall('GET', key)
  if not r then return fresh(p) end
  if type(r) == 'table' then
    if string.find(r.err, 'WRONGTYPE', 1, true) then return nil, -3, 0 end
    error(r.err)
  end
  if byte(r) ~= 49 then return nil, -2, byte(r) or 0 end
  local at, a, b, w, text, nl, ring = string.match(r, '^1 (%d+) (%d+) ?(%d*) ?(%d*) (%l [^\n]*)(\n?)(.*)$')
  if not at then return nil, -4, 0 end
  local kind = family[sub(text, 1, 1)]
  if kind == 'f' and w == '' then b, w = w, b end
  if w ~= '' and kind ~= 'f' and kind ~= 's' then return nil, -4, 0 end
  local s = {at = tonumber(at), a = tonumber(a), b = tonumber(b), w = tonumber(w), text = text}
  if nl ~= '' then s.ring = ring end
  if whole(text, s.a, s.b, s.ring) then return s end
  s.ring = nil
  if nl == '' or not extra().parts(s, ring) or not whole(text, s.a, s.b, s.ring) then return nil, -4, 0 end
  return s
end

-- scale is a*num/den rounded down, for a below den, without leaving 2^53.
local function scale(a, num, den)
  local bits, q, r = {}, 0, 0
  while num > 0 do
    bits[#bits + 1] = num % 2
    num = floor(num / 2)
  end
  for i = #bits, 1, -1 do
    q = 2 * q
    if r >= den - r then r, q = r - (den - r), q + 1 else r = 2 * r end
    if bits[i] == 1 then
      if r >= den - a then r, q = r - (den - a), q + 1 else r = r + a end
    end
  end
  return q
end

local function adoptBacklog(p, old, s, now)
  local from, a = backlog(old, s, now)
  s.at, s.a = grid(p, max(now, from) + p.tick - 1), 0
  local level = old.full - a
  if level >= 0 then
    local units = floor(level / old.p)
    if units < p.count then s.a = p.full - units * p.p - scale(level % old.p, p.p, old.p) end
    return
  end
  s.a = p.full + min(ceilDiv(-level, old.p), floor((MAX - p.full) / p.p)) * p.p
end

-- used is what the state counts at now, in units rounded up. A calendar of another plan
-- cannot be asked, so all of its count is.
local function used(p, s, now)
  if p.kind == 'b' or p.kind == 'p' then return usedBucket(p, s, now) end
  if p.name == 'c' then return s.a end
  if p.kind == 'f' then return usedFixed(p, s, now) end
  if p.kind == 's' then return usedSliding(p, s, now) end
  if p.kind == 'r' then
    local _, a = peekRing(p, s, now, 0)
    return a
  end
  local _, a = peekLog(p, s, now, 0)
  return a
end

local function charge(p, s, now, units, stamp)
  if s.rolls then return extra().move(p, s, now, stamp, units) end
  if p.kind == 'b' or p.kind == 'p' then return chargeBucket(p, s, now, units) end
  if p.kind == 'f' then return chargeFixed(p, s, now, units, stamp) end
  if p.kind == 's' then return chargeSliding(p, s, now, units, stamp) end
  if p.kind == 'r' then return chargeRing(p, s, now, units, stamp) end
  return chargeLog(p, s, now, units, stamp)
end

-- written is the latest instant at which a record can have been written.
local function written(old, s)
  if old.kind == 'f' or old.kind == 's' then return s.w or INSTANT end
  if old.kind == 'r' then return s.at + old.width - 1 end
  return s.at
end

-- adopt converts a state written under another plan, as of the instant that the plan
-- replaced the other for the caller, or that the record was written if that is later:
-- what a caller of the other plan has charged since is not dated back. It changes the
-- state in hand only: a refusal leaves the record to whoever wrote it.
local function adopt(p, s, now)
  if s.lease then extra().flatten(p, s) end
  local old, dirty = foreign(s.text), s.dirty
  if dirty then s.w = now end
  now = min(now, max(p.since or INSTANT, written(old, s)))
  local at = max(now, s.at)
  if old.kind == 'b' and p.kind == 'b' then
    adoptBacklog(p, old, s, now)
  elseif old.kind == 's' and p.kind == 's' and old.per == p.per then
    s.a, s.b = min(s.a, p.most), min(s.b, p.most)
  elseif old.kind == 'l' and p.kind == 'l' and old.per == p.per then
    keep(s, p.count)
  else
    local units = used(old, s, now)
    s.at, s.a, s.b, s.ring, s.seen = 0, 0, nil, nil, nil
    if p.kind == 's' then s.b = 0 end
    -- A calendar's windows before those that were sent count for nothing now.
    if not p.cuts or at >= p.cuts[1] then charge(p, s, at, units, at) end
  end
  s.w = at
  s.text, s.owed, s.dirty, s.adopted = p.text, s.owed or dirty, false, true
end
