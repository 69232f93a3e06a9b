-- Many requests in one call. KEYS: the records, each once. ARGV: lo hi adj margin, the
-- number of plans, and of each its text, since when it rules, how many numbers, the numbers; then requests: how many
-- claims, and of each its key, plan, mode, shadow, cost, the mode's own number and, if the request
-- has several, the cost of all its claims on that record.
--
-- Reply: raw, now, and of each request 1 admitted, 0 refused, or a reason why it was not run
-- and its detail; of each claim whether it was admitted (2: as the rest of a sum that was; 3: a
-- receipt of another plan, which gives nothing back), the words of the state that it was put to,
-- and of a rolling window its verdict instead.

local raw, now = clock(ARGV[1], ARGV[2], ARGV[3])
local margin = ARGV[4] + 0
local next = 5

local function number()
  next = next + 1
  return ARGV[next - 1] + 0
end

local function argument()
  next = next + 1
  return ARGV[next - 1]
end

local known = {}
for i = 1, number() do
  local text, since, v = argument(), number(), {}
  for j = 1, number() do v[j] = number() end
  known[i] = plan(text, v, since)
end

local states, broken = {}, {}
local out = {raw, now}

-- state is the record of key i under plan p.
local function state(i, p)
  local s = states[i]
  if not s and not broken[i] then
    local why, detail
    s, why, detail = load(KEYS[i], p)
    if s then states[i] = s else broken[i] = {why, detail} end
  end
  if not s then return nil, broken[i][1], broken[i][2] end
  if p.cuts and (now < p.cuts[1] or max(now, s.at) >= p.cuts[#p.cuts]) then return nil, -5, 0 end
  if s.lease or s.seen then
    if not extra().lent(p, s, now) then adopt(p, s, now) end
  elseif s.text ~= p.text then
    adopt(p, s, now)
  end
  s.plan = p
  return s
end

local function shown(p, s)
  if s.rolls and p.kind == 's' then return extra().show(p, s, now) end
  return s.at, s.a, s.b
end

local function put(p, s, at, a, b, ok, inUse, wait, free, units)
  local n = #out
  if p.kind == 'r' or p.kind == 'l' then
    out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = ok, free, inUse, wait, units or 0
    out[n + 6] = max(now, s.lease and s.lease.last or s.at)
  else
    out[n + 1], out[n + 2], out[n + 3], out[n + 4] = ok, at, a, b or 0
  end
end

-- decide puts a claim to its state and reports what the state was before.
local function decide(c)
  local p, s = c.plan, c.state
  local foreign = s.adopted and not s.dirty
  local at, a, b = shown(p, s)
  local ok, inUse, wait, free, units = ask(p, s, now, c.mode, c.cost, c.extra)
  local flag = ok and 1 or 0
  if c.mode == 'g' and s.rolls and p.kind == 's' then
    -- What is given back there is not what its words would say.
    flag, at, a, b = 3, shown(p, s)
  end
  if c.mode == 'g' and foreign then flag = 3 end
  put(p, s, at, a, b, flag, inUse, wait, free, units)
  return ok
end

-- settle charges a claim of an admitted request. The sum of its record was admitted: a
-- later claim of a pacing limit shares the turn of the first.
local function settle(c)
  local p, s = c.plan, c.state
  local at, a, b = shown(p, s)
  local mode, flag = c.mode, 1
  local ok, inUse, wait, free, units = ask(p, s, now, mode, c.cost, c.extra)
  if not ok then
    flag, units = 2, c.cost
    if mode == 'k' then units = 0 end
    ok, inUse, wait, free, units = chargeAt(p, s, now, units, 0)
  end
  put(p, s, at, a, b, flag, inUse, wait, free, units)
end

local function group(claims)
  local admitted = true
  for _, c in ipairs(claims) do
    c.room = peek(c.plan, c.state, now, c.total, c.mode == 'w' and c.extra or nil)
    admitted = admitted and (c.room or c.shadow)
  end
  out[#out + 1] = admitted and 1 or 0
  for _, c in ipairs(claims) do
    if admitted and c.room then
      settle(c)
    else
      local s, cost = c.state, c.total
      if c.room then cost = 0 end
      local ok, inUse, wait, free = peek(c.plan, s, now, cost, c.mode == 'w' and c.extra or nil)
      local at, a, b = shown(c.plan, s)
      put(c.plan, s, at, a, b, ok and 1 or 0, inUse, wait, free)
    end
  end
end

while next <= #ARGV do
  local n = number()
  local claims, why, detail = {}, nil, nil
  for i = 1, n do
    local key, p = number(), known[number()]
    local c = {plan = p, mode = argument(), shadow = argument() == '1', cost = number(), extra = number()}
    c.total = n > 1 and number() or c.cost
    if not why then c.state, why, detail = state(key, p) end
    claims[i] = c
  end
  if why then
    out[#out + 1], out[#out + 2] = why, detail
  elseif n == 1 then
    local place = #out + 1
    out[place] = 0
    if decide(claims[1]) or claims[1].shadow then out[place] = 1 end
  else
    group(claims)
  end
end

for i, s in pairs(states) do
  if s.dirty or s.owed then
    local store = (s.lease or s.seen) and extra().write or save
    store(KEYS[i], s, s.plan, now, margin)
  end
end
return out
