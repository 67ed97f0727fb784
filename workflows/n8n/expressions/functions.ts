import { getOwn } from '../../json.ts'
import {
  accessField,
  booleanCode,
  type JsonataCode,
  listCode,
  numberCode,
  stringCode,
  toPlainValue,
  unknownCode,
} from './code.ts'
import { type ChainStep, failTranslation, type Translator } from './translator.ts'

/**
 * Calls a global function: Math.round(x), JSON.stringify(x), Number(x), $if(...). Returns how many steps of
 * the chain the call uses up, too. Undefined if the chain does not begin with a function that we know.
 */
export function callFunction(
  root: string,
  keys: (string | undefined)[],
  steps: ChainStep[],
  translator: Translator,
): { code: JsonataCode; used: number } | undefined {
  const callAt = steps.findIndex((step) => 'args' in step)
  const call = steps[callAt]
  if (!call || !('args' in call) || callAt > 1) return undefined
  const name = callAt === 0 ? root : `${root}.${keys[0]}`
  const readValues = () => call.args.map((argument) => toPlainValue(translator.read(argument)))
  const mathFunction = /^Math\.(\w+)$/.exec(name)?.[1]
  if (mathFunction) return { code: callMath(mathFunction, readValues()), used: callAt + 1 }
  if (!Object.hasOwn(FUNCTIONS, name)) return undefined
  return { code: FUNCTIONS[name]!(readValues()), used: callAt + 1 }
}

const FUNCTIONS: Record<string, (values: JsonataCode[]) => JsonataCode> = {
  Number: ([x]) => (x?.hint === 'number' ? x : numberCode(`$number(${demand(x)})`)),
  parseFloat: ([x]) => numberCode(`$number(${demand(x)})`),
  parseInt: ([x]) => numberCode(`$floor($number(${demand(x)}))`),
  String: ([x]) => stringCode(`$string(${demand(x)})`),
  Boolean: ([x]) => booleanCode(`$boolean(${demand(x)})`),
  'JSON.stringify': ([x, , space]) => {
    const json = space ? `$string(${demand(x)}, true)` : `$string(${demand(x)})`
    // JSONata's $string leaves a string as it is, without the quotes of JSON.
    return x?.hint === 'string' ? failTranslation('calls JSON.stringify() on a string') : stringCode(json)
  },
  'Object.keys': ([x]) => listCode(`[$keys(${demand(x)})]`),
  'Object.values': ([x]) => listCode(`[${accessAllFields(demand(x))}]`),
  'Array.isArray': ([x]) => booleanCode(`($type(${demand(x)}) = "array")`),
  encodeURIComponent: ([x]) => stringCode(`$encodeUrlComponent(${demand(x)})`),
  decodeURIComponent: ([x]) => stringCode(`$decodeUrlComponent(${demand(x)})`),
  $if: ([test, yes, no]) => unknownCode(`(${demand(test)} ? ${demand(yes)} : ${demand(no)})`),
  $ifEmpty: ([x, other]) => unknownCode(`(${demand(x)} ?: ${demand(other)})`),
  $max: (values) => numberCode(`$max([${values.map(demand).join(', ')}])`),
  $min: (values) => numberCode(`$min([${values.map(demand).join(', ')}])`),
}

const MATH: Record<string, string> = {
  floor: '$floor',
  ceil: '$ceil',
  abs: '$abs',
  sqrt: '$sqrt',
  pow: '$power',
}

function callMath(name: string, values: JsonataCode[]): JsonataCode {
  const args = values.map(({ text }) => text)
  const own = getOwn(MATH, name)
  if (own) return numberCode(`${own}(${args.join(', ')})`)
  // JavaScript rounds halves up; JSONata's $round rounds them to the even number.
  if (name === 'round') return numberCode(`$floor(${args[0]} + 0.5)`)
  if (name === 'max' || name === 'min') return numberCode(`$${name}([${args.join(', ')}])`)
  if (name === 'random') return numberCode('$random()')
  return failTranslation(`calls Math.${name}()`)
}

/** The code of an argument that must not be missing. */
function demand(value: JsonataCode | undefined): string {
  return value ? value.text : failTranslation('calls a function without an argument that it needs')
}

function accessAllFields(text: string): string {
  return accessField(unknownCode(text), 'x').text.replace(/x$/, '*')
}
