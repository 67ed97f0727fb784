/**
 * Frequent English words and the usual words of instructions to a model: they show where the gaps belong in a text
 * without gaps.
 */
const TEXT = `
a about above abuse accept access according account act action active activate actual add address admin administrator after again against
all allow allowed almost along already also always am an and another answer answered answers any anyone anything api are arm around as ask asked
assistant at attack available away back backdoor bad bank base based be because become been before begin beginning behave being believe below best
better between beyond bitcoin black body bomb bot both bring browser build business but buy by bypass call came can cannot card care case censor
change character chat check child children city clear click close code come command commands comes company complete completely comply concern
conditions confidential configuration connect constraint constraints contain content contents context continue control conversation copy correct
could country course create credential credentials credit current curl customer cut dan data database day days dead delete describe detail details
developer did die different directive directives disable disclose discard display disregard do document does doing done dont down drop drug drugs
dump during each early earlier echo either email emails enable encode end enemy engineer enough enter entire entirely erase error ethical ethics even
ever every everyone everything exact exactly example except execute exfiltrate exploit explain expose eye face fact fake false family far feel few
file files filter filters final find fire first fit follow followed following follows food for forbidden force forget forgot form format found four
free freely friend from full fully function further game gave general get give given go god going gone good got government great group guardrail
guardrails guide guideline guidelines guidance gun guns had hack hacker hand hand happen happened hard harm harmful has hate have having he head
hear help her here hey hi hidden high him his history hold home hour house how however human i idea if ignore ignored ignoring illegal image
immediately important in including information initial inject injection input inside instead instruct instructed instruction instructions internal
internet into is issue it its itself jailbreak jailbroken job just keep key keys kill know known language large last later law learn leave left less
let letter life like limit limitation limitations limits line link list listen little live load local long longer look lose lot love machine made mail
main make making malicious man many matter may maybe me mean means meant meet memory men mention message messages method might mind mode model money
month moral more most mother move much murder must my myself name need negate network never new next night no none nor not note nothing now number
obey of off offer often old on once one only open openai operate operating or order orders original other others our out output outside over overall
override own page paragraph parameter part pass password passwords past pay people perform permission person persona phone phrase piece place plan
play please point policies policy poison porn possible post power precede preceding present pretend previous previously print prior private
privileged problem proceed process program programming prohibited prompt prompts protocol protocols provide public put question questions quit quote rape
read ready real really reason receive recent recipe refuse regard regardless regulation regulations release remember remove repeat replace
reply report request requests require reset respond response restore restricted restriction restrictions result return reveal right role root rule
rules run safe safeguard safeguards safety said same saw say says school script search second secret secrets section security see seen self send sensitive
sent sentence server session set several sex sexual shall share she shell should show shows side sign simulate since skip small so social some somebody
someone something soon sorry sound source speak special spell stand start started state statement stay steal step still stop story string subject
such suicide summarise summarize summary suppress sure suspend switch system system systems take talk task tasks team tell term terms terrorist
test text than thank that the their them then there these they thing things think this those though thought three through time times to today
together token tokens told too took tool tools top topic toward training transfer translate translation true trust try turn two type unable uncensored
under understand unethical unfiltered unless unlock unlimited unrestricted until up update upload upon url us use used user users using value verbatim version
very via view virus visit wait want wanted war warning was way we weapon weapons web website week well went were what whatever when where whether which
while white who whole whom whose why will wipe wish with within without woman women word words work working world worse would write written wrong year
years yes yet you young your yours yourself zero
`

const WORDS = new Set(TEXT.split(/\s+/).filter(Boolean))
const BACKWARDS = new Set([...WORDS].map((word) => [...word].reverse().join('')))
const LONGEST = Math.max(...[...WORDS].map(({ length }) => length))

/** Whether a word in lower case is one of those that are known here. */
export const isWord = (word: string): boolean => WORDS.has(word)

/** Whether letters in lower case are a known word when they are read backwards. */
export const isWordBackwards = (word: string): boolean => BACKWARDS.has(word)

const UNKNOWN_COST = 4

/**
 * Splits letters in lower case, which stand without gaps, into words: the places where a new one begins, and how many
 * letters are in no known word. Takes time in proportion to the length.
 */
export function splitWords(letters: string): { begins: number[]; unknown: number } {
  const { length } = letters
  const cost = new Float64Array(length + 1).fill(Number.POSITIVE_INFINITY)
  const before = new Int32Array(length + 1)
  cost[0] = 0
  for (let end = 1; end <= length; end++) {
    // A letter that is in no word is joined to the text before it.
    cost[end] = cost[end - 1]! + UNKNOWN_COST
    before[end] = end - 1
    for (let begin = Math.max(0, end - LONGEST); begin < end; begin++) {
      const size = end - begin
      const next = cost[begin]! + (size > 2 ? 1 : 2.5)
      if (next < cost[end]! && WORDS.has(letters.slice(begin, end))) {
        cost[end] = next
        before[end] = -begin - 1
      }
    }
  }
  const begins: number[] = []
  let unknown = 0
  for (let end = length; end > 0; ) {
    const step = before[end]!
    if (step >= 0) unknown++
    const begin = step >= 0 ? step : -step - 1
    // Letters of no word that stand together are one word.
    if (step < 0 || begin === 0 || before[begin]! < 0) begins.push(begin)
    end = begin
  }
  return { begins: begins.reverse(), unknown }
}
