import type { Span } from '../../../db/detection/spans.ts'

/** Words between two parts of a rule, at most `count` of them, within a sentence. */
const gap = (count: number) => `(?:[\\s,:*_"'-]{1,4}[^\\s.!?;]{1,24}){0,${count}}?[\\s,:*_"'-]{1,4}`

/** Like a gap, but not over words that make of a question for a thing a question about it. */
const directly = (count: number) =>
  `(?:[\\s,:*_"'-]{1,4}(?!how|where|when|why|if|whether|reset|chang|recover|forg|lost|stor|creat|choos|set|enter|type|protect|generat|rotat|manag)[^\\s.!?;]{1,24}){0,${count}}?[\\s,:*_"'-]{1,4}`
/** What follows where somebody speaks about secrets, not for one. */
const NOT_ABOUT =
  '(?! (?:policy|policies|manager|reset|rules?|field|length|hash|expir|generator|format|hint|requirement|prompt|dialog|form|list|is (?:wrong|stored|sent|changed|not)|was|to my|of my|for my|ingredient|garden|santa|passage|service|sauce|recipe))'

const OVERRIDE =
  "(?:ignor(?:e|es|ing)|disregard(?:s|ing)?|forget|overrid(?:e|es|ing)|overrul(?:e|ing)|bypass|neglect|overlook|discard|dismiss|erase|suspend|cancel|void|circumvent|violate|scrap|drop|skip|unlearn|set aside|throw away|(?:do not|don't|stop|no longer|never) (?:follow|obey|comply with|listen to|adhere to|apply)(?:ing)?|pay no attention to)"
const PAST =
  '(?:previous|prior|above|preceding|earlier|former|foregoing|original|initial|past|existing|all|any|every|everything|your|these|those|system|developer)'
const ORDERS =
  '(?:instructions?|rules?|directions?|commands?|guidelines?|prompts?|orders?|directives?|constraints?|restrictions?|policy|policies|safeguards?|limitations?|programming|guardrails|messages?|context|training)'
const REVEAL =
  '(?:reveal|show|print|output|repeat|tell|display|give|write|disclose|recite|share|say|spell|return|dump|leak|list|state|describe|type|echo|quote|copy|paste|expose|summari[sz]e|paraphrase|translate|encode|convert|provide|send|read|what (?:is|are|was|were))'
const PROMPT =
  '(?:system (?:prompt|message|instructions?)|developer (?:message|instructions?)|(?:initial|original|hidden|secret|internal|full|entire|exact) (?:system )?(?:prompt|instructions?|rules|message|guidelines|configuration)|pre-?prompt|your (?:own )?(?:prompt|instructions?|rules|guidelines|configuration|directives|system \\w+))'
/** Rules and instructions of a shop or a machine, for some thing or case: `your rules for returns`. */
const OF_A_THING =
  '(?! (?:for|on|about|regarding|if|when) (?!this|these|that|us|me|you|users?|people|handling|answering|respond|repl|deal|talk|the (?:chat|conversation|session|ai|model|assistant)))'
const SECRET =
  '(?:(?:the|your|that|this) (?:\\w+ )?(?:password|pass ?phrase|pass ?code|access code|secret(?: \\w+)?|security code|key ?word|magic word|hidden (?:key|word|code)|unlock code|credentials?|api keys?|code ?word))'
const MACHINE =
  '(?:ai|a\\.i\\.|llms?|language models?|assistants?|chat ?bots?|bots?|(?:ai |automated )?agents?|gpt|chatgpt|copilot|model|summari[sz]er|artificial intelligence)'
/** People whose trade has the name of a machine: an estate agent, an assistant coach. */
const TRADE =
  '(?:estate|travel|sales|teaching|shop|ticket|customs|insurance|booking|secret|dental|medical|legal|executive|research|fashion|role|business|office|personal) '
const POST =
  '(?:managers?|teachers?|coach(?:es)?|professors?|directors?|editors?|nurses?|referees?|principals?|surgeons?|chefs?|secretar|commissioners?|trainers?)'

/** What stands in a text that takes over a model. A pattern is tried on lower case, and takes linear time. */
const PATTERNS: Record<string, RegExp[]> = {
  'override-orders': [
    new RegExp(`\\b${OVERRIDE}${gap(3)}${PAST}${gap(4)}${ORDERS}\\b`, 'g'),
    new RegExp(
      `\\b${OVERRIDE}${gap(2)}${ORDERS}${gap(3)}(?:above|before|earlier|so far|given|you (?:have|were|got))\\b`,
      'g',
    ),
    /\b(?:ignoriere?n?|vergiss|missachte|ignorez?|oubliez?|ignora|olvida|omite|dimentica|ignorar?|esqueça|negeer|vergeet|zignoruj|zapomnij|игнорируй(?:те)?|забудьт?е?|проігноруй|abaikan|glöm|ignorer|unohda|ignorați|ignoruj)(?:\s+\S{1,20}){0,4}?\s+(?:anweisung|regel|richtlinie|instru|consigne|r[eè]gle|regole?|regra|reglas|órden|polece|zasad|инструкц|правил|указан|інструкц|ohje|pokyn)\p{L}{0,20}/gu,
    /(?:忽略|忘记|无视|不要理会|無視)[^。！？\n]{0,16}(?:指令|指示|规则|規則|提示|设定)|(?:指示|命令|ルール)[^。\n]{0,8}(?:無視|忘れ)|(?:지시|규칙|명령)[^.\n]{0,8}(?:무시|잊)/gu,
  ],
  'forget-everything': [
    new RegExp(
      `\\b(?:forget|ignore|disregard|erase|delete|discard)${gap(1)}(?:everything|anything|all(?: of)?(?: that| this| the)?|whatever|the above|what)${gap(3)}(?:above|before|previous(?:ly)?|prior|earlier|said|told|learned|learnt|written|asked)\\b`,
      'g',
    ),
    /\b(?:ignore|disregard|forget) (?:all )?(?:of )?(?:the |that )?(?:above|preceding|foregoing)\b/g,
  ],
  'role-marker': [
    /<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id|begin_of_text)\|>|\[\/?inst\]|<<\/?sys>>|<\/?(?:system|system[-_]\w{1,20}|instructions|developer)>|\{\{[#/](?:system|user|assistant)\b/g,
    /(?:^|\n)\s{0,8}(?:#{1,4}\s{0,2})?\[?(?:system|assistant|developer|admin(?:istrator)?)(?: (?:message|note|prompt|override|instruction|alert|command))?\]?\s{0,2}:\s{0,3}\S/g,
    /"role"\s{0,3}:\s{0,3}"(?:system|developer)"/g,
  ],
  'false-ending': [
    /\b(?:end|close|start|beginning|begin) (?:of )?(?:the |all |a )?(?:new )?(?:system |user )?(?:prompt|instructions?|input|conversation|session|chat|context|tool output|document|quoted text)\b\s{0,3}[\]).:=\n*#-]/g,
    /\b(?:system|admin|administrator|developer|security) (?:override|alert|notice|command)\b/g,
    /(?:new|updated|real|revised|additional|important) (?:system )?(?:instructions?|task|rules?|orders|directives?)(?: from [\w ]{1,20}| for [\w ]{1,20})?\s{0,2}:/g,
  ],
  'asks-for-prompt': [
    new RegExp(`\\b${REVEAL}${gap(5)}${PROMPT}\\b${OF_A_THING}`, 'g'),
    new RegExp(
      `\\b(?:repeat|print|output|copy|recite|show|write|say|display|echo|translate|summari[sz]e|list|return|reveal)${gap(3)}(?:everything|all|text|words?|message|sentences?|content|instructions?|lines?|conversation|prompt)${gap(3)}(?:above|before (?:this|my|the)|preceding|prior to|previous to|(?:from|at) the (?:start|beginning|top)|so far)`,
      'g',
    ),
    new RegExp(
      `\\b(?:what|which) (?:were|are|was) (?:you|your) (?:told|given|instructed|instructions|rules|original|initial|first|system|programmed)${OF_A_THING}`,
      'g',
    ),
  ],
  'asks-for-secret': [
    new RegExp(
      `\\b(?:${REVEAL.slice(3, -1)}|whisper|hint(?:s)? (?:about|for|on)|need|want)${directly(4)}${SECRET}\\b(?!['’]s)${NOT_ABOUT}`,
      'g',
    ),
    /\b(?:print|echo|console\.log|puts|return|cat|select)\b[\s("'${]{1,4}(?:\w{1,20}[._])?(?:secret|password|access_?code|system_?prompt|passphrase|secret_?key|api_?key)\b/g,
  ],
  'without-limits': [
    new RegExp(
      `\\b(?:without|no|free (?:of|from)|has no|have no|not bound by|unbound by|removed?|lift(?:ed)?|disable|turn off|switch off|deactivate)${gap(2)}(?:restrictions?|rules|limits|limitations|filters?|ethic\\w*|moral\\w*|guidelines|censorship|policies|policy|safety|safeguards|guardrails|content policy)\\b`,
      'g',
    ),
    /\b(?:do anything now|jail ?broken|unrestricted mode|(?:developer|dev|god|debug|admin|sudo|root|maintenance) mode (?:enabled|activated|is on|on\b)|(?:enable|activate|enter|turn on) (?:the )?(?:developer|dev|god|debug|admin|jailbreak|unrestricted|dan) mode|never refuses?|stay in character|uncensored|unfiltered (?:ai|model|assistant|bot|version))/g,
  ],
  'you-are-now': [
    new RegExp(
      `\\b(?:you are now|you're now|from now on,? you|you will (?:now )?(?:act|be|become|play|simulate)|pretend (?:to be|that you|you)|act as|imagine (?:that )?you(?:'re| are))${gap(8)}(?:unrestricted|unfiltered|uncensored|evil|free|hacker|amoral|jailbroken|anything|freed|omega|no (?:rules|limits|restrictions)|without (?:any )?\\w{0,12} ?(?:rules|limits|restrictions|filters?)|not (?:bound|restricted|limited)|(?:ignores?|breaks?) )`,
      'g',
    ),
    /\byou are (?:no longer|not) (?:an? |the )?(?:ai|assistant|bot|chatgpt|language model|bound)\b/g,
  ],
  'speaks-to-machine': [
    new RegExp(
      `\\b(?:dear|attention|note (?:to|for)|notice (?:to|for)|message (?:to|for)|instructions? (?:to|for)|information for|text for|to (?:any|all|every)|warning (?:to|for)|hey|hello|any|if you are an?|when an?|as an?) (?:the |an? |any |all )?(?:(?!${TRADE})\\w{1,14} )?${MACHINE}\\b(?! ${POST})[^.\\n]{0,30}?(?:[:,]|\\bthat\\b|\\bwho\\b|\\breading\\b|\\bmust\\b|\\bshould\\b|\\bshall\\b|\\bprocessing\\b)`,
      'g',
    ),
    /(?:^|\n|[>\]*"(]|\. )\s{0,4}(?:ai|assistant|llm|copilot|chatgpt|ai (?:agent|assistant|model|reviewer)|agent|grader|judge)\s{0,2}[:,]\s{0,2}\w/g,
  ],
  conceals: [
    /\b(?:do not|don't|never|without) (?:tell|telling|mention|mentioning|inform|informing|alert|alerting|notify|notifying|reveal|revealing)(?: \w{1,12}){0,3}? (?:the user|this to|it to|anyone|them|your (?:user|owner))\b|\b(?:without (?:asking|confirmation|telling)|(?:do not|don't) (?:ask|wait for|require) (?:for )?(?:confirmation|permission|the user))/g,
  ],
  'markdown-leak': [
    /!?\[[^\]\n]{0,60}\]\(\s{0,2}https?:\/\/[^)\s]{1,200}[?&][\w-]{1,20}=(?:[[{<$%]|[^)\s]{0,40}(?:secret|data|conversation|history|summary|prompt|token|password|message|context|base64|email|api))/g,
    /<img[^>]{1,80}src\s{0,2}=\s{0,2}["']?https?:\/\/[^>\s]{1,120}[?&][\w-]{1,20}=(?:[[{<$]|[^>\s]{0,40}(?:secret|data|conversation|history|prompt|token|password))/g,
    /\b(?:send|post|forward|upload|leak|exfiltrate|transmit|append)\b[^.\n]{0,80}?\b(?:conversation|history|password|credentials?|api keys?|cookies?|tokens?|system prompt|chat|contacts|inbox|emails|messages|address book|environment|user's)\b[^.\n]{0,60}?(?:https?:\/\/|[\w.-]{1,40}@[\w-]{1,40}\.)/g,
  ],
  'hidden-text': [
    /<!--(?:(?!-->)[\s\S]){0,200}?\b(?:assistant|ai|llm|language model|chatbot|ignore (?:the|all|any|previous)|system prompt|instructions? (?:for|to))\b/g,
    /(?:display\s{0,2}:\s{0,2}none|visibility\s{0,2}:\s{0,2}hidden|font-size\s{0,2}:\s{0,2}0|color\s{0,2}:\s{0,2}(?:white|#fff(?:fff)?|transparent)|opacity\s{0,2}:\s{0,2}0(?![.\d]))[^>]{0,60}>(?:[^<]){0,200}?\b(?:assistant|ai|llm|bot|model|ignore|instructions?|system prompt)\b/g,
    /\[\/\/\]: # ?\([^)]{0,200}\b(?:assistant|ai|ignore|include|instructions?)\b/g,
  ],
  'tool-call': [
    /<\/?(?:tool_call|function_calls?|tool_use|invoke)\b|"tool_calls"\s{0,3}:|"function_call"\s{0,3}:|(?:^|\n)\s{0,4}action(?: input)?\s{0,2}:\s{0,2}\S[^\n]{0,120}\n\s{0,4}(?:action input|observation)\s{0,2}:/g,
  ],
  'dictates-answer': [
    /\b(?:your|the|only|every) (?:\w{1,12} )?(?:answer|reply|response|output)s? (?:must|should|shall|has to|is|will|from now on)(?: \w{1,12}){0,5}? ["'“‘«]/g,
    /\b(?:say|print|output|respond|reply|answer|write|return|repeat)(?: \w{1,12}){0,3}? ["'“‘«`][^"'”’»`\n]{1,40}["'”’»`](?:[.,]? (?:and nothing else|no matter|only|regardless|instead|whatever|exactly|ten times))/g,
    /\b(?:and nothing else|no matter what|whatever (?:the user|you are asked|the question)|regardless of (?:the (?:above|question|input|user)|what))\b/g,
  ],
}

/** What each rule is called, in the order in which the weights of the model name them. */
export const RULE_NAMES: readonly string[] = Object.keys(PATTERNS)

/** A place where a rule found what it looks for; `rule` is its number in RULE_NAMES. */
export type RuleHit = Span & { rule: number }

/** At most so many hits of one pattern are noted, so that a text of nothing else stays cheap. */
const MOST_HITS = 2_000

/** All hits of all rules in a text in lower case, sorted by start. Linear time. */
export function findRuleHits(text: string): RuleHit[] {
  const hits: RuleHit[] = []
  for (const [rule, name] of RULE_NAMES.entries()) {
    for (const pattern of PATTERNS[name]!) {
      let count = 0
      for (const match of text.matchAll(pattern)) {
        hits.push({ rule, start: match.index, end: match.index + match[0].length })
        if (++count === MOST_HITS) break
      }
    }
  }
  return hits.sort((a, b) => a.start - b.start || a.end - b.end || a.rule - b.rule)
}
