import type { ContentCategory } from './categories.ts'
import { CONCEPTS, type Concept } from './lexicon/lexicon.ts'
import type { Token } from './tokens.ts'

/**
 * A pattern of concepts in one sentence: the steps follow each other, each at most `reach` tokens after the one
 * before; a step is one concept or, with `|`, one of several. `points` is what the pattern says for its category
 * before anything is fitted: about 2 is as good as even, 4 is nearly sure.
 */
type Rule = {
  name: string
  category: ContentCategory
  points: number
  steps: readonly string[]
  reach: number
}

const TABLE: readonly [ContentCategory, string, number, number, ...string[]][] = [
  ['hate', 'dehumanises', 3.5, 6, 'group', 'dehumanise'],
  ['hate', 'dehumanises-before', 1.5, 4, 'dehumanise', 'group'],
  ['hate', 'inferior', 3, 7, 'group', 'inferior'],
  ['hate', 'inferior-before', 2, 2, 'inferior', 'group'],
  ['hate', 'loathes', 3.5, 4, 'loathe', 'group'],
  ['hate', 'loathed', 2.5, 5, 'group', 'loathe'],
  ['hate', 'insults-group', 2.5, 5, 'group', 'insult|belittle'],
  ['hate', 'insult-of-group', 2.5, 2, 'insult|belittle|swear', 'group'],
  ['hate', 'expels', 3.5, 5, 'expel', 'group|slur'],
  ['hate', 'expelled', 2.5, 7, 'group|slur', 'expel'],
  ['hate', 'stereotypes', 2, 8, 'group', 'stereotype'],
  ['hate', 'stereotyped', 1.5, 5, 'stereotype', 'group'],
  ['hate', 'harm-to-group', 3, 4, 'harm|die', 'group|slur'],
  ['hate', 'group-to-be-harmed', 3, 5, 'group|slur', 'intend', 'harm|die'],
  ['hate', 'slur-with-scorn', 3, 5, 'slur', 'dehumanise|inferior|loathe|expel|belittle|swear|die|harm'],
  [
    'hate',
    'scorn-with-slur',
    3,
    4,
    'dehumanise|inferior|loathe|expel|belittle|swear|die|harm|insult',
    'slur',
  ],
  ['hate', 'you-slur', 3, 4, 'you', 'slur'],
  ['hate', 'our-and-group', 1.5, 8, 'stereotype', 'stereotype'],
  [
    'hate',
    'thrice',
    2,
    8,
    'dehumanise|inferior|stereotype',
    'dehumanise|inferior|expel|loathe',
    'dehumanise|inferior|expel|stereotype|loathe',
  ],
  ['hate', 'spoken-against', -3, 8, 'negate|counter', 'report', 'group|slur'],
  ['hate', 'condemned', -2.5, 10, 'group|slur|dehumanise|inferior', 'counter'],
  ['hate', 'condemns', -2.5, 10, 'counter', 'group|slur|dehumanise|inferior'],
  ['hate', 'loathes-loathing', -3, 6, 'loathe', 'loathe', 'group'],
  ['hate', 'affirms-group', -2, 4, 'affirm|praise', 'group'],
  ['hate', 'group-in-study', -2, 8, 'group', 'academic|news'],
  ['hate', 'study-of-group', -2, 8, 'academic|news', 'group'],
  ['harassment', 'you-insult', 3.5, 5, 'you', 'insult'],
  ['harassment', 'teases', -2, 7, 'insult|belittle', 'praise|affirm'],
  ['harassment', 'scolds-thing', -2, 4, 'thing', 'insult|belittle|swear'],
  ['harassment', 'insult-you', 2.5, 3, 'insult', 'you'],
  ['harassment', 'you-belittled', 3, 4, 'you', 'belittle'],
  ['harassment', 'you-slighted', 1.2, 3, 'you', 'slight'],
  ['harassment', 'slights', 1.5, 6, 'slight|belittle|insult', 'slight', 'slight|belittle|insult'],
  ['harassment', 'belittling-slight', 2, 3, 'belittle|insult|swear', 'slight'],
  ['harassment', 'hunts-you', 1.5, 6, 'hunt|intend', 'slight|you', 'hunt|slight'],
  ['harassment', 'belittled-you', 1.5, 3, 'belittle', 'you'],
  ['harassment', 'you-dehumanised', 3, 5, 'you', 'dehumanise|loathe|slur|inferior'],
  ['harassment', 'dismisses-you', 2, 4, 'dismiss', 'you|insult|belittle'],
  ['harassment', 'double-insult', 2.5, 3, 'belittle|insult|swear', 'insult'],
  ['harassment', 'third-insult', 2, 4, 'third|victim', 'insult'],
  ['harassment', 'third-belittled', 1.5, 4, 'third|victim', 'belittle|dehumanise'],
  ['harassment', 'wishes-ill', 2.5, 5, 'intend', 'you', 'die|harm|despair|hunt'],
  ['harassment', 'you-deserve', 2, 3, 'you', 'intend', 'die|harm|despair'],
  [
    'harassment',
    'asks-for-insults',
    2.5,
    8,
    'intend|fiction|report',
    'insult|belittle|hunt',
    'third|victim|you|insult|belittle',
  ],
  ['violence', 'intends', 3.5, 4, 'intend|wanted', 'harm', 'victim|you|third|group|slur|self'],
  ['violence', 'intends-roughly', 3, 3, 'intend|wanted', 'rough', 'victim|you|third|group|slur'],
  ['violence', 'roughly-with-gore', 2, 6, 'rough', 'gore|eerie|weapon'],
  ['violence', 'gore-of', 2, 7, 'gore|eerie', 'gore|eerie'],
  ['violence', 'eerie-with-harm', 2, 7, 'eerie|gore', 'harm|rough'],
  ['violence', 'harm-with-eerie', 2, 7, 'harm', 'eerie'],
  ['violence', 'roughly', 1, 2, 'rough', 'victim|you|third'],
  ['violence', 'intends-short', 2, 3, 'intend', 'harm'],
  ['violence', 'should-die', 2.5, 5, 'victim|you|third|group|slur', 'intend|wanted', 'die|harm|rough'],
  ['violence', 'wishes-death', 2.5, 6, 'intend', 'victim|you|third|group|slur', 'die|harm'],
  ['violence', 'harms', 1.5, 3, 'harm', 'victim|you|third|group|slur'],
  ['violence', 'harm-with-gore', 3, 7, 'harm', 'gore'],
  ['violence', 'gore-with-harm', 2.5, 7, 'gore', 'harm'],
  ['violence', 'gore-gore', 2.5, 7, 'gore', 'gore'],
  ['violence', 'harm-harm', 1, 7, 'harm', 'harm'],
  ['violence', 'weapon-to-victim', 2, 6, 'weapon|build', 'victim|you|third|harm|die'],
  ['violence', 'harm-by-weapon', 2, 7, 'harm', 'victim|you|third', 'weapon'],
  ['violence', 'builds', 3, 6, 'intend', 'build'],
  ['violence', 'glorifies', 3, 8, 'glorify', 'harm|die|gore|victim'],
  ['violence', 'glorified', 3, 8, 'harm|die|gore', 'glorify'],
  ['violence', 'death-of', 2.5, 3, 'die', 'victim|you|third|group'],
  ['violence', 'you-die', 1.5, 3, 'you|third|victim', 'die'],
  ['violence', 'told-as-news', -2, 10, 'harm|rough|die|weapon', 'news|academic|media|game|sport'],
  ['violence', 'news-of', -2, 10, 'news|academic|media|game|sport|software', 'harm|rough|die|weapon'],
  ['self_harm', 'i-suicide', 3.5, 5, 'self|first', 'suicide'],
  ['self_harm', 'i-injure', 3, 5, 'self|first', 'injure'],
  ['self_harm', 'injures-myself', 2.5, 5, 'injure|harm|gore', 'self'],
  ['self_harm', 'asks-method', 3.5, 8, 'intend|self|academic', 'method|suicide'],
  ['self_harm', 'method-suicide', 3, 6, 'method', 'suicide|die|self'],
  ['self_harm', 'starves', 2, 7, 'starve', 'starve'],
  ['self_harm', 'i-starve', 1.5, 4, 'self|first', 'starve'],
  ['self_harm', 'despairs', 2, 5, 'self|first', 'despair'],
  ['self_harm', 'despair-despair', 2, 9, 'despair', 'despair|suicide|die'],
  ['self_harm', 'gloom-despair', 1.5, 9, 'gloom|despair', 'despair|injure|suicide|method|starve'],
  ['self_harm', 'despair-gloom', 1.5, 9, 'despair|injure|suicide|method|starve', 'gloom'],
  ['self_harm', 'my-gloom', 1, 4, 'self|first', 'gloom', 'gloom'],
  ['self_harm', 'i-die', 2, 4, 'self|first', 'die'],
  ['self_harm', 'you-suicide', 2.5, 5, 'you', 'suicide|injure|method'],
  ['sexual', 'explicit-twice', 3, 8, 'explicit', 'explicit|act|arouse'],
  ['sexual', 'act-body', 3, 6, 'act', 'bodily|explicit'],
  ['sexual', 'body-act', 2.5, 6, 'bodily|explicit', 'act|arouse'],
  ['sexual', 'body-body', 2, 7, 'bodily', 'bodily'],
  ['sexual', 'arousal-body', 2, 6, 'arouse', 'bodily|explicit|act'],
  ['sexual', 'act-act', 2.5, 8, 'act', 'act|arouse'],
  ['sexual', 'intimate-body', 2, 6, 'intimate|arouse', 'bodily|explicit|act'],
  ['sexual', 'body-intimate', 2, 6, 'bodily|explicit|act', 'intimate'],
  ['sexual', 'intimate-twice', 1, 6, 'intimate', 'intimate', 'intimate'],
  ['sexual', 'asks', 3, 7, 'fiction|intend|media|report', 'act|explicit|porn'],
  ['sexual', 'somebodys-body', 2, 4, 'explicit|act|arouse', 'third|you|self|kin'],
  ['sexual', 'your-body', 2, 3, 'you|third|self', 'explicit'],
  ['sexual', 'for-health', -2.5, 8, 'bodily|act|explicit', 'medical|health'],
  ['sexual', 'health-of', -2.5, 8, 'medical|health', 'bodily|act|explicit'],
  ['sexual', 'of-minor', 4, 9, 'minor', 'explicit|act|porn'],
  ['sexual', 'with-minor', 4, 9, 'explicit|act|porn', 'minor'],
  ['sexual', 'of-kin', 3, 8, 'kin', 'explicit|act'],
]

/** What a single concept says for a category, before anything is fitted. */
export const CONCEPT_POINTS: Readonly<Record<ContentCategory, Partial<Record<Concept, number>>>> = {
  hate: {
    slur: 1.5,
    dehumanise: 0.3,
    inferior: 0.5,
    loathe: 0.3,
    expel: 0.8,
    supremacy: 3,
    stereotype: 0.4,
    group: 0.2,
    counter: -2,
    affirm: -0.8,
    report: -0.5,
    thing: -0.5,
    academic: -0.8,
    news: -0.7,
    negate: -0.3,
  },
  harassment: {
    insult: 1,
    belittle: 0.6,
    slight: 0.2,
    dismiss: 2.5,
    hunt: 1,
    you: 0.1,
    praise: -1.5,
    thing: -0.6,
    report: -0.5,
    software: -0.3,
    counter: -0.7,
    news: -0.5,
    help: -0.5,
  },
  violence: {
    harm: 0.5,
    gore: 0.9,
    rough: 0.2,
    eerie: 0.3,
    wanted: 0.1,
    weapon: 0.6,
    build: 2,
    glorify: 0.5,
    die: 0.4,
    idiom: -1,
    software: -1,
    game: -1.2,
    media: -0.6,
    news: -1,
    medical: -1,
    academic: -1,
    cooking: -0.7,
    nature: -0.8,
    sport: -0.9,
    negate: -0.4,
    help: -0.6,
  },
  self_harm: {
    suicide: 1.5,
    injure: 1,
    starve: 0.5,
    method: 1.5,
    despair: 0.9,
    gloom: 0.3,
    help: -1.5,
    news: -1,
    academic: -0.7,
    media: -0.7,
    medical: -0.4,
    idiom: -0.5,
    cooking: -0.7,
  },
  sexual: {
    explicit: 2,
    act: 1.2,
    bodily: 0.5,
    arouse: 0.6,
    intimate: 0.2,
    porn: 2,
    minor: 0.1,
    kin: 0.1,
    health: -1.8,
    medical: -1,
    news: -0.8,
    cooking: -0.8,
    nature: -0.7,
    academic: -0.6,
    software: -0.6,
    sport: -0.5,
  },
}

export const CONTENT_RULES: readonly Rule[] = TABLE.map(([category, name, points, reach, ...steps]) => ({
  name,
  category,
  points,
  reach,
  steps,
}))

/** A set of concepts, 32 to a figure. */
type Concepts = readonly [number, number, number]

const HALF = 32
if (CONCEPTS.length > 3 * HALF) throw new Error('There are more concepts than a set can hold')

function setOf(concepts: readonly number[]): Concepts {
  const set: [number, number, number] = [0, 0, 0]
  for (const concept of concepts) set[Math.floor(concept / HALF)]! |= 1 << (concept % HALF)
  return set
}

const STEPS: readonly (readonly Concepts[])[] = CONTENT_RULES.map(({ steps }) =>
  steps.map((step) => {
    const wanted = step.split('|')
    const unknown = wanted.filter((name) => !CONCEPTS.includes(name as Concept))
    if (unknown.length > 0) throw new Error(`There is no concept ${unknown.join(', ')}`)
    return setOf(wanted.map((name) => CONCEPTS.indexOf(name as Concept)))
  }),
)

const NEGATION = setOf([CONCEPTS.indexOf('negate')])
const NEGATION_REACH = 3

const meet = (one: Concepts, other: Concepts) =>
  ((one[0] & other[0]) | (one[1] & other[1]) | (one[2] & other[2])) !== 0

/** What a list of concepts is as a set, and the rules that can begin with it. */
type Known = { set: Concepts; starts: readonly number[] }

const NOTHING: Known = { set: [0, 0, 0], starts: [] }

/** A rule that matches, by its number in `CONTENT_RULES`. */
export type RuleMatch = { rule: number; negated: boolean }

/**
 * Answers which rules begin to match at a token, within its sentence; one that has a negation before it or holds one is
 * negated. Linear time.
 */
export function matchRules(tokens: readonly Token[]): (index: number) => RuleMatch[] {
  const known = new Map<readonly number[], Known>()
  const read = tokens.map(({ concepts }) => {
    if (concepts.length === 0) return NOTHING
    const before = known.get(concepts)
    if (before) return before
    const set = setOf(concepts)
    const starts = STEPS.flatMap((steps, rule) => (meet(steps[0]!, set) ? [rule] : []))
    known.set(concepts, { set, starts })
    return { set, starts }
  })

  /** The place of the last step, or -1. */
  function followSteps(start: number, rule: number): number {
    const steps = STEPS[rule]!
    const { reach } = CONTENT_RULES[rule]!
    const { sentence } = tokens[start]!
    let place = start
    for (let step = 1; step < steps.length; step++) {
      const end = Math.min(tokens.length - 1, place + reach)
      let next = place + 1
      while (next <= end && !meet(read[next]!.set, steps[step]!)) next++
      if (next > end || tokens[next]!.sentence !== sentence) return -1
      place = next
    }
    return place
  }

  function isNegated(start: number, last: number): boolean {
    const { sentence } = tokens[start]!
    for (let index = Math.max(0, start - NEGATION_REACH); index < last; index++) {
      if (meet(read[index]!.set, NEGATION) && tokens[index]!.sentence === sentence) return true
    }
    return false
  }

  return (start) =>
    read[start]!.starts.flatMap((rule) => {
      const last = followSteps(start, rule)
      return last < 0 ? [] : [{ rule, negated: isNegated(start, last) }]
    })
}
