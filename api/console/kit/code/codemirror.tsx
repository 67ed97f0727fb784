import { closeBrackets, closeBracketsKeymap } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { javascript } from '@codemirror/lang-javascript'
import { json, jsonParseLinter } from '@codemirror/lang-json'
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { linter, lintGutter, lintKeymap } from '@codemirror/lint'
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search'
import { Compartment, EditorState, type Extension } from '@codemirror/state'
import { EditorView, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'
import { readNonce } from '../../data/nonce.ts'
import { completing } from './completing.ts'
import './codemirror.css'

export type CodeProps = {
  value: string
  onChange?: (value: string) => void
  language?: 'json' | 'javascript' | 'text'
  /** Names it where there is no Field around it. */
  label?: string
  readOnly?: boolean
  /** Ctrl+Enter. */
  onSubmit?: () => void
  /** How high it grows before it scrolls, in lines. */
  lines?: number
  /** More of CodeMirror, such as completions: only in chunks that load it anyway. Keep the same array. */
  extensions?: readonly unknown[]
}

const THEME = EditorView.theme({
  '&': { fontSize: '12.5px', color: 'var(--ink)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55' },
  '.cm-content': { caretColor: 'var(--ink)', padding: '8px 0' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-gutters': { background: 'transparent', border: '0', color: 'var(--quiet)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground, ::selection':
    {
      background: 'var(--accent-soft)',
    },
  '.cm-tooltip': {
    background: 'var(--raised)',
    border: '1px solid var(--line)',
    borderRadius: '6px',
    color: 'var(--ink)',
  },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { background: 'var(--accent-ground)', color: '#fff' },
  // CodeMirror's own marks are images in data: addresses, which the policy forbids.
  '.cm-lintRange-error, .cm-lintRange-warning': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--bad)',
  },
  '.cm-lint-marker': { width: '8px', height: '8px', margin: '6px 2px 0', borderRadius: '50%' },
  '.cm-lint-marker-error': { content: '""', background: 'var(--bad)' },
  '.cm-lint-marker-warning': { content: '""', background: 'var(--warn)' },
  '.cm-lint-marker-info': { content: '""', background: 'var(--busy)' },
  '.cm-panels': { background: 'var(--raised)', color: 'var(--ink)' },
})

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--busy)' },
  { tag: [tags.keyword, tags.operator], color: 'var(--accent)' },
  { tag: [tags.comment], color: 'var(--quiet)', fontStyle: 'italic' },
  { tag: [tags.invalid], color: 'var(--bad)' },
])

/** What every editor of the console has: colours of the theme, and what keeps it within the policy. */
export function baseExtensions(): Extension[] {
  const typing = EditorView.domEventHandlers({ beforeinput: replaceSelected })
  return [EditorView.cspNonce.of(readNonce()), THEME, syntaxHighlighting(COLOURS), typing]
}

/**
 * Types over what is selected. The browser would keep its colour by an inline style, which the policy refuses.
 */
function replaceSelected(event: InputEvent, view: EditorView): boolean {
  const { from, to } = findReplaced(view)
  const { data, inputType, isComposing } = event
  if (inputType !== 'insertText' || !data || isComposing || from === to || view.state.readOnly) return false
  event.preventDefault()
  const replace = () =>
    view.state.update({
      changes: { from, to, insert: data },
      selection: { anchor: from + data.length },
      userEvent: 'input.type',
      scrollIntoView: true,
    })
  const handlers = view.state.facet(EditorView.inputHandler)
  if (!handlers.some((handle) => handle(view, from, to, data, replace))) view.dispatch(replace())
  return true
}

/** The text that typing replaces. The editor learns of a selection a moment after it was made; the page knows at once. */
function findReplaced(view: EditorView): { from: number; to: number } {
  const { main } = view.state.selection
  const made = getSelection()
  const range = made?.rangeCount ? made.getRangeAt(0) : null
  const isNews = main.empty && range?.collapsed === false
  if (!isNews || !view.contentDOM.contains(range.commonAncestorContainer)) return main
  return {
    from: view.posAtDOM(range.startContainer, range.startOffset),
    to: view.posAtDOM(range.endContainer, range.endOffset),
  }
}

/** What an editor is called: as a Field around it says, or by a label of its own. */
export function nameEditor(id?: string, label?: string, describedBy?: string): Extension {
  return EditorView.contentAttributes.of({
    // A long text scrolls: it must be plain that the keyboard can reach it.
    tabindex: '0',
    // A label names real inputs only; the editor is none.
    ...(id ? { id, 'aria-labelledby': `${id}-label` } : {}),
    ...(label ? { 'aria-label': label } : {}),
    ...(describedBy ? { 'aria-describedby': describedBy } : {}),
  })
}

/** Shows another value, unless it is what was typed. */
export function replaceText(view: EditorView | null, value: string): void {
  const text = view?.state.doc.toString()
  if (text !== undefined && text !== value)
    view?.dispatch({ changes: { from: 0, to: text.length, insert: value } })
}

function speak(language: CodeProps['language']): Extension {
  if (language === 'javascript') return javascript()
  if (language === 'text') return []
  const parse = jsonParseLinter()
  // An empty field is no broken JSON.
  return [json(), lintGutter(), linter((view) => (view.state.doc.length === 0 ? [] : parse(view)))]
}

/** The editor itself; pages use `Code`, which loads it. Tab goes on to the next field: Ctrl+] indents. */
export function CodeMirror(props: CodeProps & { id?: string; describedBy?: string }) {
  const { value, language = 'json', readOnly = false, label, lines = 20, id, describedBy, extensions } = props
  const place = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView | null>(null)
  const latest = useRef(props)
  const changing = useRef(new Compartment())
  useEffect(() => {
    latest.current = props
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is made once, and changed below
  useEffect(() => {
    const submit = () => {
      latest.current.onSubmit?.()
      return latest.current.onSubmit !== undefined
    }
    const made = new EditorView({
      parent: place.current!,
      state: EditorState.create({
        doc: value,
        extensions: [
          ...baseExtensions(),
          keymap.of([{ key: 'Mod-Enter', run: submit }]),
          [lineNumbers(), history(), indentOnInput(), bracketMatching(), closeBrackets(), completing()],
          highlightSelectionMatches(),
          keymap.of([...closeBracketsKeymap, ...searchKeymap, ...historyKeymap]),
          keymap.of([...lintKeymap, ...defaultKeymap]),
          EditorView.lineWrapping,
          changing.current.of([]),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange?.(update.state.doc.toString())
          }),
        ],
      }),
    })
    view.current = made
    return () => made.destroy()
  }, [])
  useEffect(() => {
    const height = EditorView.theme({ '.cm-scroller': { maxHeight: `${lines * 1.6}em`, overflow: 'auto' } })
    const next: Extension[] = [
      speak(language),
      EditorState.readOnly.of(readOnly),
      nameEditor(id, label, describedBy),
      height,
      ...((extensions ?? []) as Extension[]),
    ]
    view.current?.dispatch({ effects: changing.current.reconfigure(next) })
  }, [language, readOnly, id, label, describedBy, lines, extensions])
  useEffect(() => {
    replaceText(view.current, value)
  }, [value])
  return <div className="code-editor" ref={place} />
}
