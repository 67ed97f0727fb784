import { RE2JS } from 're2js'

/** The long names of Unicode's general categories, which ECMA knows and RE2 does not. */
const CATEGORIES = new Map(
  Object.entries({
    L: 'Letter',
    Lu: 'Uppercase_Letter',
    Ll: 'Lowercase_Letter',
    Lt: 'Titlecase_Letter',
    Lm: 'Modifier_Letter',
    Lo: 'Other_Letter',
    M: 'Mark',
    Mn: 'Nonspacing_Mark',
    Mc: 'Spacing_Mark',
    Me: 'Enclosing_Mark',
    N: 'Number',
    Nd: 'Decimal_Number',
    Nl: 'Letter_Number',
    No: 'Other_Number',
    P: 'Punctuation',
    Pc: 'Connector_Punctuation',
    Pd: 'Dash_Punctuation',
    Ps: 'Open_Punctuation',
    Pe: 'Close_Punctuation',
    Pi: 'Initial_Punctuation',
    Pf: 'Final_Punctuation',
    Po: 'Other_Punctuation',
    S: 'Symbol',
    Sm: 'Math_Symbol',
    Sc: 'Currency_Symbol',
    Sk: 'Modifier_Symbol',
    So: 'Other_Symbol',
    Z: 'Separator',
    Zs: 'Space_Separator',
    Zl: 'Line_Separator',
    Zp: 'Paragraph_Separator',
    C: 'Other',
    Cc: 'Control',
    Cf: 'Format',
    Co: 'Private_Use',
    Cs: 'Surrogate',
  }).map(([short, long]) => [long, short]),
)
const PROPERTY = /((?<!\\)(?:\\\\){0,20}\\[pP])\{(?:(?:General_Category|gc|Script|sc)=)?(\w+)\}/g

const TOKEN = /\\[\s\S]/g

/**
 * A pattern of ECMA as RE2 writes it; throws for one that refers back by name, which RE2 would take for the letter k.
 * Parts that RE2 does not have stay unchanged, and are refused when the pattern is compiled.
 */
export function translatePattern(source: string): string {
  if (source.match(TOKEN)?.includes('\\k')) throw new Error('invalid escape sequence: `\\k`')
  const named = source.replace(
    PROPERTY,
    (_, letter: string, name: string) => `${letter}{${CATEGORIES.get(name) ?? name}}`,
  )
  return RE2JS.translateRegExp(named)
}
