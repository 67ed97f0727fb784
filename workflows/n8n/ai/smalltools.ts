import { signRequest } from '../signins/requests.ts'
import { keepTexts } from '../texts.ts'
import { type Fields, objectOf } from './asking.ts'
import { type ToolGiven, writeArgument } from './fromai.ts'

// Tools of n8n's that need nothing but what the model asks for.

const CALCULATOR =
  'Useful for getting the result of a math expression. The input to this tool should be a valid mathematical expression ' +
  'that could be executed by a simple calculator.'

/** Reads an expression from left to right: numbers, brackets, functions and constants, with the usual precedence. */
const CALCULATE = `const text = String($args.input ?? '')
const CONSTANTS = { PI: Math.PI, E: Math.E }
const NAMES = ['abs', 'acos', 'asin', 'atan', 'cbrt', 'ceil', 'cos', 'exp', 'floor', 'log', 'log10', 'log2', 'max', 'min', 'pow', 'round', 'sign', 'sin', 'sqrt', 'tan', 'trunc']
const tokens = text.match(/\\d+\\.?\\d*(?:[eE][+-]?\\d+)?|\\.\\d+|[A-Za-z]\\w*|\\*\\*|[-+*\\/%^(),!]|\\S/g) ?? []
let at = 0
const take = (sign) => tokens[at] === sign && ++at > 0
const fail = () => { throw new Error('no expression') }
const sum = () => {
  let value = product()
  for (;;) {
    if (take('+')) value += product()
    else if (take('-')) value -= product()
    else return value
  }
}
const product = () => {
  let value = signed()
  for (;;) {
    if (take('*')) value *= signed()
    else if (take('/')) value /= signed()
    else if (take('%')) value %= signed()
    else return value
  }
}
const signed = () => take('-') ? -signed() : take('+') ? signed() : power()
const power = () => {
  let base = single()
  while (take('!')) { let all = 1; for (let n = 2; n <= Math.min(base, 200); n++) all *= n; base = all }
  return take('^') || take('**') ? base ** signed() : base
}
const single = () => {
  if (take('(')) { const value = sum(); return take(')') ? value : fail() }
  const token = tokens[at++] ?? fail()
  if (/^[\\d.]/.test(token)) return Number(token)
  if (CONSTANTS[token.toUpperCase()] !== undefined && Object.hasOwn(CONSTANTS, token.toUpperCase())) return CONSTANTS[token.toUpperCase()]
  const name = token === 'ln' ? 'log' : token
  if (!NAMES.includes(name) || !take('(')) fail()
  const given = []
  do given.push(sum()); while (take(','))
  return take(')') ? Math[name](...given) : fail()
}
try {
  const value = sum()
  return at === tokens.length ? String(value) : "I don't know how to do that."
} catch {
  return "I don't know how to do that."
}`

const addInput = ({ args }: ToolGiven) =>
  args.add({ name: 'input', schema: { type: 'string' }, optional: true })

export function mapCalculator(given: ToolGiven): Fields {
  addInput(given)
  return { description: CALCULATOR, type: 'CODE', code: CALCULATE }
}

const WIKIPEDIA =
  'A tool for interacting with and fetching data from the Wikipedia API. The input should always be a string query.'

export function mapWikipedia(given: ToolGiven): Fields {
  addInput(given)
  const message =
    'n8n tells the model the first 4,000 characters of the three pages that are found. Perdure tells it the JSON of the ' +
    'encyclopedia, with the introductions of those pages.'
  given.report('parameter', 'parameters', message, given.node.parameters)
  return {
    ...{ description: WIKIPEDIA, type: 'HTTP', method: 'GET', idempotent: true },
    url: 'https://en.wikipedia.org/w/api.php',
    query: {
      ...{ action: 'query', format: 'json', formatversion: '2', generator: 'search', gsrlimit: '3' },
      ...{ gsrsearch: `={{ ${writeArgument('input')} }}`, prop: 'extracts' },
      ...{ exintro: '1', explaintext: '1', exlimit: '3', redirects: '1' },
    },
  }
}

const SEARCH =
  'a search engine. useful for when you need to answer questions about current events. input should be a search query.'

export function mapSerpApi(given: ToolGiven): Fields {
  addInput(given)
  const { node, tools, report } = given
  const message =
    'n8n picks the answer out of what is found. Perdure tells the model the first 64 KB of the JSON of the search.'
  report('parameter', 'parameters', message, node.parameters)
  const parameters = { authentication: 'predefinedCredentialType', nodeCredentialType: 'serpApi' }
  return {
    ...{ name: 'search', description: SEARCH, type: 'HTTP', method: 'GET', idempotent: true },
    url: 'https://serpapi.com/search',
    query: {
      ...{ engine: 'google', ...(keepTexts(objectOf(node.parameters.options)) as Fields) },
      q: `={{ ${writeArgument('input')} }}`,
    },
    ...signRequest({ ...node, parameters }, tools),
  }
}
