import { closeBrackets, closeBracketsKeymap, startCompletion } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { javascript } from '@codemirror/lang-javascript'
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { type Diagnostic, linter, setDiagnostics } from '@codemirror/lint'
import { Compartment, EditorState, type Extension } from '@codemirror/state'
import { EditorView, keymap, lineNumbers, placeholder as showPlaceholder } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { type RefObject, useEffect, useRef } from 'react'
import { baseExtensions, nameEditor, replaceText } from '../kit/code/codemirror.tsx'
import { completing } from '../kit/code/completing.ts'
import { useNodeTypes } from '../nodeform/data.ts'
import { listBefore } from '../nodeform/run.ts'
import { type Taker, useForm } from '../nodeform/scope.ts'
import { complete, type Reach } from './complete.ts'
import { itemsOf, type Reading } from './evaluate.ts'
import { foresee } from './foresee.ts'
import { isInside, speakExpressions } from './language.ts'

export type ExpressionProps = {
  value: string
  onChange: (value: string) => void
  /** `template`: a text with expressions in braces; `whole`: all of it is one expression. */
  mode?: 'template' | 'whole'
  as?: 'value' | 'condition'
  /** How it is coloured outside of braces. */
  language?: 'text' | 'sql' | 'javascript'
  /** How many lines it shows at least. */
  lines?: number
  placeholder?: string
  /** Names it where no Field is around it. */
  label?: string
}

type EditorProps = ExpressionProps & {
  mode: 'template' | 'whole'
  readOnly: boolean
  /** The fault of the expression, and its place. */
  problem: Reading | null
  invalid: boolean
  id?: string
  describedBy?: string
}

const COLOURS = HighlightStyle.define([
  { tag: tags.variableName, color: 'var(--busy)' },
  { tag: tags.brace, color: 'var(--accent)', fontWeight: '600' },
])

const LOOK = EditorView.theme({
  '.cm-content': { padding: '7px 0' },
  '.cm-line': { padding: '0 10px' },
  '.cm-placeholder': { color: 'var(--quiet)' },
  '.cm-scroller': { maxHeight: '320px', overflow: 'auto' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected] .cm-completionDetail': { color: '#fff' },
  '.cm-completionDetail': { color: 'var(--quiet)', fontStyle: 'normal' },
  '.cm-tooltip.cm-completionInfo': { padding: '4px 8px', maxWidth: '280px' },
})

/** What may be another one with each rendering, while the editor stays. */
type Latest = RefObject<{ onChange: (value: string) => void; reach: Reach }>

/** Ctrl+Space opens the completion, as typing does; Enter in a short text goes nowhere. */
export function ExpressionEditor(props: EditorProps) {
  const { value, mode, language = 'text', lines = 1, readOnly, problem, invalid } = props
  const { id, label, describedBy, placeholder, onChange } = props
  const { node, graph, place, taker } = useForm()
  const { data: types } = useNodeTypes()
  const box = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView | null>(null)
  const changing = useRef(new Compartment())
  const latest = useRef({ onChange, reach: {} as Reach })
  useEffect(() => {
    const items = node.parentId === undefined ? itemsOf(node) : (itemsOf(node) ?? true)
    const summaries = () => new Map(types?.map(({ type, summary }) => [type, summary]))
    const known = (root: string) => foresee(root, node, graph, summaries())
    const reach: Reach = { mode, language, place, before: listBefore(node, graph), items, foresee: known }
    latest.current = { onChange, reach }
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is made once, and changed below
  useEffect(() => {
    const insert = (path: string, at?: number) =>
      insertPath(made, language === 'javascript' ? speakScript(path) : path, mode, at)
    const extensions = [typing(latest, lines), changing.current.of([]), takingPaths(taker, insert)]
    const made = new EditorView({
      parent: box.current!,
      state: EditorState.create({ doc: value, extensions }),
    })
    view.current = made
    return () => {
      if (taker.current?.insert === insert) taker.current = null
      made.destroy()
    }
  }, [])
  useEffect(() => {
    view.current?.dispatch({
      effects: changing.current.reconfigure([
        language === 'javascript' ? [javascript(), lineNumbers()] : speakExpressions(mode, language),
        EditorState.readOnly.of(readOnly),
        nameEditor(id, label, describedBy),
        EditorView.theme({ '.cm-content': { minHeight: `${lines * 1.55 + 1.1}em` } }),
        placeholder ? showPlaceholder(placeholder) : [],
      ]),
    })
  }, [mode, language, readOnly, id, label, describedBy, lines, placeholder])
  useEffect(() => {
    replaceText(view.current, value)
  }, [value])
  useEffect(() => {
    const { current } = view
    if (current)
      current.dispatch(setDiagnostics(current.state, findPlaces(current.state.doc.length, problem)))
  }, [problem])
  return <div className={invalid ? 'code-editor invalid' : 'code-editor'} ref={box} />
}

/** What typing does: colours, brackets, completion and keys, and that it is told. */
function typing(latest: Latest, lines: number): Extension {
  return [
    ...baseExtensions(),
    syntaxHighlighting(COLOURS),
    LOOK,
    [history(), bracketMatching(), closeBrackets(), linter(null)],
    completing({
      override: [(context) => complete(context, latest.current.reach)],
      icons: false,
      // Enter means nothing else in a short text, so it chooses as soon as there is something to choose.
      ...(lines > 1 ? {} : { interactionDelay: 0 }),
    }),
    keymap.of([...closeBracketsKeymap, ...historyKeymap]),
    lines > 1 ? [] : keymap.of([{ key: 'Enter', run: () => true }]),
    keymap.of(defaultKeymap),
    EditorView.lineWrapping,
    EditorView.updateListener.of((update) => {
      if (update.docChanged) latest.current.onChange(update.state.doc.toString())
      if (update.docChanged && update.transactions.some((one) => one.isUserEvent('input.type')))
        continueCompletion(update.view)
    }),
  ]
}

/** Takes paths of the tree of the input: those chosen there after it had the focus, and those dropped on it. */
function takingPaths(taker: RefObject<Taker | null>, insert: (path: string, at?: number) => void): Extension {
  return EditorView.domEventHandlers({
    focus: () => {
      taker.current = { insert }
    },
    drop: (event, on) => {
      const path = event.dataTransfer?.getData('text/plain') ?? ''
      if (!path.startsWith('$')) return false
      event.preventDefault()
      insert(path, on.posAtCoords({ x: event.clientX, y: event.clientY }) ?? undefined)
      return true
    },
  })
}

/** A path as JavaScript has it: names in backticks become keys in brackets. */
function speakScript(path: string): string {
  return path.replaceAll(/\.`([^`]*)`/g, '["$1"]')
}

/** A dot after a path goes on with its keys. */
function continueCompletion(view: EditorView): void {
  const { head } = view.state.selection.main
  if (['.', '$'].includes(view.state.sliceDoc(head - 1, head))) startCompletion(view)
}

/** Inserts a path where the cursor is; in a text, in braces of its own. */
function insertPath(view: EditorView, path: string, mode: 'template' | 'whole', at?: number): void {
  if (view.state.readOnly) return
  const range = at === undefined ? view.state.selection.main : { from: at, to: at }
  const text = view.state.doc.toString()
  const script = mode === 'template' && text.startsWith('=') && !text.includes('{{')
  const insert = isInside(text, range.from, mode) || script ? path : `{{ ${path} }}`
  view.dispatch({
    changes: { from: range.from, to: range.to, insert },
    selection: { anchor: range.from + insert.length },
    userEvent: 'input.drop',
  })
  view.focus()
}

function findPlaces(length: number, problem: Reading | null): Diagnostic[] {
  const { mark, error } = problem ?? {}
  if (!mark || !error || mark.to > length) return []
  return [{ ...mark, severity: 'error', message: error.message }]
}
